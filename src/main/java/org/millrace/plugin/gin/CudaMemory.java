package org.millrace.plugin.gin;

import org.jspecify.annotations.Nullable;
import org.millrace.cuda.driver.CopyOrder;
import org.millrace.cuda.driver.ForeignMemory;
import org.millrace.gin.WindowMemory;
import org.millrace.gin.WindowTransfer;

/**
 * A window in GPU memory or in host memory that a GPU's copy engines access by its address. The GPU copies between any
 * two of these windows: this rank's windows, and peers' windows that are mapped.
 */
abstract class CudaMemory implements WindowMemory {

    /**
     * Values of {@link WindowTransfer#slot()} for a transfer that uses no staging buffer. The values name the queue
     * that copies the bytes, or state that no copy is pending.
     */
    static final int COPIED_HERE = -1;
    private static final int COPIED_DIRECTLY = -2;
    private static final int COPIED_OUT = -3;
    static final int DONE = -4;

    final CudaMover mover;
    final long address;
    private final long bytes;
    private final PeerMappings peers;

    CudaMemory(CudaMover mover, long address, long bytes, PeerMappings peers) {
        this.mover = mover;
        this.address = address;
        this.bytes = bytes;
        this.peers = peers;
    }

    @Override
    public final long bytes() {
        return bytes;
    }

    /** Returns whether a transfer's copy out of this window is complete. The transfer's slot determines the queue. */
    final boolean isCopiedOut(WindowTransfer transfer) {
        return (transfer.slot() == COPIED_DIRECTLY ? mover.direct() : mover.out()).isDone(transfer.ticket());
    }

    @Override
    public boolean beginCopy(WindowTransfer transfer, long offset, WindowMemory source, long sourceOffset,
            long length) {
        if (!mover.in().hasRoom()) {
            return false;
        }
        transfer.slot(COPIED_HERE);
        transfer.place(null, 0, offset, length);
        transfer.ticket(mover.in().copy(address + offset, addressIn(source, sourceOffset), length));
        return true;
    }

    /** Begins a copy from this window to memory that is not a window. Returns false if the queue of copies is full. */
    final boolean beginOut(WindowTransfer transfer, long to, long offset, long length) {
        if (!mover.out().hasRoom()) {
            return false;
        }
        transfer.slot(COPIED_OUT);
        transfer.place(null, 0, offset, length);
        transfer.ticket(mover.out().copy(to, address + offset, length, CopyOrder.FREE));
        return true;
    }

    @Override
    public final long reach(int peer) {
        return peers.reach(peer);
    }

    @Override
    public final boolean beginPeerCopy(WindowTransfer transfer, int peer, long offset, WindowMemory source,
            long sourceOffset, long length) {
        return beginDirect(transfer, peers.address(peer) + offset, addressIn(source, sourceOffset), length,
                source instanceof CudaHostMemory);
    }

    @Override
    public final boolean beginPeerRead(WindowTransfer transfer, int peer, long offset, WindowMemory target,
            long targetOffset, long length) {
        return beginDirect(transfer, addressIn(target, targetOffset), peers.address(peer) + offset, length,
                this instanceof CudaHostMemory);
    }

    private boolean beginDirect(WindowTransfer transfer, long to, long from, long length, boolean fromHost) {
        if (!mover.direct().hasRoom()) {
            return false;
        }
        transfer.slot(COPIED_DIRECTLY);
        int order = orderOf(transfer);
        transfer.ticket(fromHost ? mover.direct().copyFromHost(to, from, length, order)
                : mover.direct().copy(to, from, length, order));
        return true;
    }

    static int orderOf(WindowTransfer transfer) {
        int sequence = transfer.sequence();
        if (sequence == WindowTransfer.ALL) {
            return CopyOrder.IN_TURN;
        }
        return transfer.isStrict() ? CopyOrder.strict(sequence) : CopyOrder.relaxed(sequence);
    }

    static long addressIn(WindowMemory source, long offset) {
        return ((CudaMemory) source).address + offset;
    }

    @Override
    public void close() {
        // A failed communicator may leave copies in flight. These copies must end before the peers' memory is unmapped.
        mover.settle();
        peers.close();
    }

    /**
     * Mappings of a window's memory at each peer.
     *
     * @param peers mapped memory by rank; null for a rank whose memory this process does not map
     * @param bytes size of the window at each rank, in bytes
     */
    record PeerMappings(@Nullable ForeignMemory[] peers, long[] bytes) implements AutoCloseable {

        long reach(int peer) {
            return peers[peer] == null ? 0 : bytes[peer];
        }

        long address(int peer) {
            return peers[peer].address();
        }

        @Override
        public void close() {
            for (ForeignMemory peer : peers) {
                if (peer != null) {
                    peer.close();
                }
            }
        }
    }
}
