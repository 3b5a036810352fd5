package org.millrace.plugin.gin;

import org.millrace.gin.HostWindowMemory;
import org.millrace.gin.StagingRing;
import org.millrace.gin.WindowMemory;
import org.millrace.gin.WindowTransfer;
import org.millrace.plugin.gin.CudaMemory.PeerMappings;

/**
 * A window in host memory that a GPU's kernels also use. The network and this process's threads access it directly. If
 * a copy's source or target is in GPU memory or in a peer's memory, the GPU makes the copy.
 */
final class CudaHostMemory extends CudaMemory {

    private final HostWindowMemory host;

    /**
     * @param host    the window's memory, for access by threads
     * @param address address of the window's memory on the GPU
     */
    public CudaHostMemory(CudaMover mover, HostWindowMemory host, long address, PeerMappings peers) {
        super(mover, address, host.bytes(), peers);
        this.host = host;
    }

    @Override
    public boolean openRead(WindowTransfer transfer, long offset, long bytes) {
        transfer.slot(DONE);
        return host.openRead(transfer, offset, bytes);
    }

    @Override
    public boolean readable(WindowTransfer transfer) {
        return transfer.slot() == DONE || isCopiedOut(transfer);
    }

    @Override
    public boolean openWrite(WindowTransfer transfer, long offset, long bytes) {
        transfer.slot(DONE);
        return host.openWrite(transfer, offset, bytes);
    }

    @Override
    public boolean written(WindowTransfer transfer) {
        return transfer.slot() == DONE || mover.in().isDone(transfer.ticket());
    }

    @Override
    public boolean beginCopy(WindowTransfer transfer, long offset, WindowMemory source, long sourceOffset, long bytes) {
        if (source instanceof CudaHostMemory other) {
            transfer.slot(DONE);
            return host.beginCopy(transfer, offset, other.host, sourceOffset, bytes);
        }
        return super.beginCopy(transfer, offset, source, sourceOffset, bytes);
    }

    @Override
    public boolean beginAdd(WindowTransfer transfer, long offset, long value) {
        transfer.slot(DONE);
        return host.beginAdd(transfer, offset, value);
    }

    @Override
    public boolean beginCopyOut(WindowTransfer transfer, long offset, StagingRing ring, long ringOffset, long bytes) {
        transfer.slot(DONE);
        return host.beginCopyOut(transfer, offset, ring, ringOffset, bytes);
    }

    @Override
    public boolean beginCopyIn(WindowTransfer transfer, long offset, StagingRing ring, long ringOffset, long bytes) {
        transfer.slot(DONE);
        return host.beginCopyIn(transfer, offset, ring, ringOffset, bytes);
    }

    @Override
    public void abandon(WindowTransfer transfer) {
        // Submits the copies that were held back for batches. The window's memory is freed only after they are
        // complete.
        mover.submit();
    }

    @Override
    public void close() {
        super.close();
        host.close();
    }

    @Override
    public String toString() {
        return host + ", which the GPU uses too";
    }
}
