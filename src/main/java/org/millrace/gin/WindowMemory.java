package org.millrace.gin;

/**
 * The memory of a window, with the operations that move bytes from it and to it. Only the agent's thread calls these
 * methods, except {@link #close}. They must not block: a long operation is begun and then polled. Each line shows the
 * calls and the events of one kind of transfer, in their order. A method with a question mark is polled until it
 * returns true:
 *
 * <pre>
 *   out:  openRead   →  readable?  →  the payload is sent from region()      →  release
 *   in:   openWrite  →  the payload is received into region()  →  arrived    →  written?  →  release
 *   copy: beginCopy  →  written?   →  release
 *   add:  beginAdd   →  written?   →  release
 *   direct put or get: beginPeerCopy or beginPeerRead  →  readable?  →  the peer is notified  →  release
 *   staged out: beginCopyOut  →  readable?  →  the peer is notified   →  release
 *   staged in:  beginCopyIn   →  written?   →  release
 * </pre>
 *
 * <p>
 * A method that opens or begins a transfer stores the memory's data about the transfer in the {@link WindowTransfer}.
 * It returns false if it cannot begin the transfer now, for example because no staging buffer is free. The agent then
 * calls it again later. The caller has checked that ranges lie in the window. A range has at least 1 byte and at most
 * the length of the communicator's chunk. Only a range of a copy between devices may be longer. If the communicator
 * ends before the transfer, the agent calls {@link #abandon} instead of {@link #release}, in any state of the transfer.
 * An implementation ignores the events that it does not need.
 *
 * <p>
 * Transfers need not become readable or written in the order in which they were begun. The agent ensures that a signal
 * follows its puts. A memory that the network accesses directly returns its own region. Other memory, such as GPU
 * memory, returns staging buffers of at least {@link GinOptions#chunkBytes}, and copies between them and the window.
 */
public interface WindowMemory extends AutoCloseable {

    long bytes();

    /** Begins to make bytes readable for the network. Stores the location of the payload in {@code transfer}. */
    boolean openRead(WindowTransfer transfer, long offset, long bytes);

    /**
     * Returns whether the bytes are at the transfer's location. Only then may the payload be sent or the peer notified.
     */
    boolean readable(WindowTransfer transfer);

    /**
     * Returns whether the network reads a copy of the source, not the window itself. If so, the source may be
     * overwritten as soon as the transfer is readable. Otherwise it may be overwritten only after the frame was sent. A
     * put's counter and a flush count the put as complete when its source may be overwritten. The result of this method
     * is the same for all transfers.
     */
    default boolean isCopied() {
        return false;
    }

    /** Prepares a location for bytes that will arrive, and stores the location in {@code transfer}. */
    boolean openWrite(WindowTransfer transfer, long offset, long bytes);

    /**
     * Records that the payload has arrived at the transfer's location. The memory may write the payload to the window
     * from now on.
     */
    default void arrived(WindowTransfer transfer) {}

    /**
     * Returns whether the transfer's bytes are written to the window: bytes that arrived, a copy, or an add. A kernel
     * that is notified after this call sees the bytes.
     */
    boolean written(WindowTransfer transfer);

    /**
     * Begins a copy to this window. The source is another window of the same communicator and rank, or this window
     * itself. On a machine with a GPU, each of the two memories may belong to the GPU or to the host.
     */
    boolean beginCopy(WindowTransfer transfer, long offset, WindowMemory source, long sourceOffset, long bytes);

    /**
     * Begins to add a value to 8 bytes of the window. The sum may wrap.
     *
     * @param offset offset of the 8 bytes, a multiple of 8
     */
    boolean beginAdd(WindowTransfer transfer, long offset, long value);

    /**
     * Returns the size of a peer's corresponding window in bytes, if this rank's device can access that window
     * directly, without staging and without the network. The result is 0 if the device cannot access that window, which
     * is the usual case.
     */
    default long reach(int peer) {
        return 0;
    }

    /**
     * Begins a copy to the corresponding window of a peer. The peer's {@link #reach} must not be 0. The transfer is
     * {@link #readable} when the bytes are visible to the peer's kernels.
     *
     * @param offset offset in the peer's window
     */
    default boolean beginPeerCopy(WindowTransfer transfer, int peer, long offset, WindowMemory source,
            long sourceOffset, long bytes) {
        throw new UnsupportedOperationException("rank " + peer + " is not within reach");
    }

    /**
     * Begins a copy from the corresponding window of a peer. The peer's {@link #reach} must not be 0. The transfer is
     * {@link #readable} when the bytes are visible to this rank's kernels.
     *
     * @param offset offset in the peer's window
     */
    default boolean beginPeerRead(WindowTransfer transfer, int peer, long offset, WindowMemory target,
            long targetOffset, long bytes) {
        throw new UnsupportedOperationException("rank " + peer + " is not within reach");
    }

    /**
     * Begins a copy from this window to a ring in memory that is shared with a peer. The transfer is {@link #readable}
     * when the bytes are visible to the peer's device. The source may be overwritten from that time on.
     */
    boolean beginCopyOut(WindowTransfer transfer, long offset, StagingRing ring, long ringOffset, long bytes);

    /** Begins a copy to this window from a ring in memory that is shared with a peer. */
    boolean beginCopyIn(WindowTransfer transfer, long offset, StagingRing ring, long ringOffset, long bytes);

    /** Ends the transfer. Its location may then be used for another transfer. */
    default void release(WindowTransfer transfer) {}

    /**
     * Ends the transfer in any state, instead of {@link #release}. Its result is not needed, and the network does not
     * access its location. However, copies of the transfer may still be in progress. The location may be used for
     * another transfer only after these copies are complete.
     */
    default void abandon(WindowTransfer transfer) {}

    /**
     * Waits for copies in progress, and frees all resources. Called once, when the window is closed and no transfer is
     * open.
     */
    @Override
    void close();
}
