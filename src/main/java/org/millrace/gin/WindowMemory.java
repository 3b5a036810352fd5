package org.millrace.gin;

/**
 * The memory of a window, as the agent moves bytes out of it and into it. All calls except {@link #close} come from the
 * agent's thread, and none may block. A long operation is begun and then polled.
 *
 * <pre>
 *   out:  openRead   →  readable?  →  the payload is sent from region()      →  release
 *   in:   openWrite  →  the payload is received into region()  →  arrived    →  written?  →  release
 *   copy: beginCopy  →  written?   →  release
 *   add:  beginAdd   →  written?   →  release
 *   peer: beginPeerCopy  →  readable?  →  the peer is notified        →  release
 *   staged out: beginCopyOut  →  readable?  →  the peer is notified   →  release
 *   staged in:  beginCopyIn   →  written?   →  release
 * </pre>
 *
 * <p>
 * A method that opens or begins a transfer stores its own data in the transfer. It returns false if no room is
 * available now, and the agent calls it again. Ranges are already checked, and have between 1 byte and the
 * communicator's chunk. Ranges of copies between devices may be longer. If the communicator ends before a transfer
 * does, the transfer is abandoned instead of released, at any point. A transfer skips the steps that it does not need.
 *
 * <p>
 * Transfers may become readable and written in another order than they were begun. The agent keeps signals after the
 * puts that they belong to. A memory that the network accesses directly returns its own region. Other memory (of a GPU)
 * returns its own staging buffers, of at least {@link GinOptions#chunkBytes}, and copies.
 */
public interface WindowMemory extends AutoCloseable {

    long bytes();

    /** Begins to make bytes readable for the network, and sets their location in the transfer. */
    boolean openRead(WindowTransfer transfer, long offset, long bytes);

    /** Returns whether the payload lies at the transfer's location, and may be sent. */
    boolean readable(WindowTransfer transfer);

    /**
     * Returns whether a source may be written again as soon as it is readable for the network, because it was copied.
     * Otherwise the network reads the window itself until the frame is sent. A put is complete, for its counter and for
     * a flush, when its source is free. The value is the same for all transfers.
     */
    default boolean isCopied() {
        return false;
    }

    /** Assigns a location to bytes that will arrive. */
    boolean openWrite(WindowTransfer transfer, long offset, long bytes);

    /**
     * Notifies the memory that the payload has arrived at the transfer's location. It may be written to the window from
     * now on.
     */
    default void arrived(WindowTransfer transfer) {}

    /**
     * Returns whether all bytes were written, so that a kernel that is notified now will see them: bytes that arrived,
     * a copy, or an add.
     */
    boolean written(WindowTransfer transfer);

    /**
     * Begins a copy from this window or another window of the same communicator. If there is a GPU, each of the
     * memories may belong to the GPU or to the host.
     */
    boolean beginCopy(WindowTransfer transfer, long offset, WindowMemory source, long sourceOffset, long bytes);

    /** Begins to add to 8 bytes of the window, at a multiple of 8; the sum may wrap. */
    boolean beginAdd(WindowTransfer transfer, long offset, long value);

    /**
     * Returns the number of bytes of a peer's corresponding window that this rank's device accesses directly, without
     * staging and without the network. This is all of the peer's memory, or 0 if it is out of reach, as in most cases.
     */
    default long reach(int peer) {
        return 0;
    }

    /**
     * Begins a copy to the corresponding window of a peer in {@link #reach}. It is {@link #readable} once the bytes are
     * visible to the peer's kernels.
     */
    default boolean beginPeerCopy(WindowTransfer transfer, int peer, long offset, WindowMemory source,
            long sourceOffset, long bytes) {
        throw new UnsupportedOperationException("rank " + peer + " is not within reach");
    }

    /**
     * Begins a copy from the corresponding window of a peer in {@link #reach}. It is {@link #readable} once the bytes
     * are visible to this rank's kernels.
     */
    default boolean beginPeerRead(WindowTransfer transfer, int peer, long offset, WindowMemory target,
            long targetOffset, long bytes) {
        throw new UnsupportedOperationException("rank " + peer + " is not within reach");
    }

    /**
     * Begins a copy to memory that is shared with a peer. It is {@link #readable} once the bytes are visible to the
     * peer's device. The source is free then.
     */
    boolean beginCopyOut(WindowTransfer transfer, long offset, StagingRing ring, long ringOffset, long bytes);

    /** Begins a copy from memory that is shared with a peer, which already contains the bytes. */
    boolean beginCopyIn(WindowTransfer transfer, long offset, StagingRing ring, long ringOffset, long bytes);

    /** Ends the transfer. Its location may be assigned to another transfer. */
    default void release(WindowTransfer transfer) {}

    /**
     * Ends the transfer in any state, instead of {@link #release}. No thread waits for it, and the network does not
     * access its location. Its copies may still be in progress. The location may be assigned to another transfer only
     * after these are complete.
     */
    default void abandon(WindowTransfer transfer) {}

    /**
     * Waits for operations in progress, and frees all resources. Called once, when the window is closed and no transfer
     * is open.
     */
    @Override
    void close();
}
