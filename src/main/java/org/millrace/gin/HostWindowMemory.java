package org.millrace.gin;

import java.lang.foreign.MemorySegment;
import org.millrace.abi.gin.GinCells;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;

/**
 * Host memory of a window. The network reads and writes it directly. Every copy and add is complete when the method
 * that begins it returns.
 */
public final class HostWindowMemory implements WindowMemory {

    private final MemoryRegion region;
    private final MemorySegment segment;

    private HostWindowMemory(MemoryRegion region, MemorySegment segment) {
        this.region = region;
        this.segment = segment;
    }

    /**
     * Registers memory with a network.
     *
     * @param memory native memory, aligned to 8 bytes. The memory must not be freed before the window is closed.
     */
    @SuppressWarnings("restricted")
    public static HostWindowMemory register(Network network, MemorySegment memory) {
        // A segment of the global scope avoids a liveness check in each copy. The window is closed before its memory
        // is freed, and the close waits until the agent no longer uses the window. The segment is therefore valid.
        MemorySegment global = MemorySegment.ofAddress(memory.address()).reinterpret(memory.byteSize());
        return new HostWindowMemory(network.register(global), global);
    }

    @Override
    public long bytes() {
        return segment.byteSize();
    }

    @Override
    public boolean openRead(WindowTransfer transfer, long offset, long bytes) {
        transfer.place(region, offset, offset, bytes);
        return true;
    }

    @Override
    public boolean readable(WindowTransfer transfer) {
        return true;
    }

    @Override
    public boolean openWrite(WindowTransfer transfer, long offset, long bytes) {
        transfer.place(region, offset, offset, bytes);
        return true;
    }

    @Override
    public boolean written(WindowTransfer transfer) {
        return true;
    }

    @Override
    public boolean beginCopy(WindowTransfer transfer, long offset, WindowMemory source, long sourceOffset, long bytes) {
        if (!(source instanceof HostWindowMemory host)) {
            throw new GinException("a put from " + source + " to host memory, where there is no device to copy it");
        }
        MemorySegment.copy(host.segment, sourceOffset, segment, offset, bytes);
        return true;
    }

    @Override
    public boolean beginAdd(WindowTransfer transfer, long offset, long value) {
        GinCells.addRelease(segment, offset, value);
        return true;
    }

    @Override
    public boolean beginCopyOut(WindowTransfer transfer, long offset, StagingRing ring, long ringOffset, long bytes) {
        MemorySegment.copy(segment, offset, ring.memory(), ringOffset, bytes);
        return true;
    }

    @Override
    public boolean beginCopyIn(WindowTransfer transfer, long offset, StagingRing ring, long ringOffset, long bytes) {
        MemorySegment.copy(ring.memory(), ringOffset, segment, offset, bytes);
        return true;
    }

    @Override
    public void close() {
        region.close();
    }

    @Override
    public String toString() {
        return "host memory of " + segment.byteSize() + " bytes";
    }
}
