package org.millrace.gin.window;

import org.millrace.gin.GinOptions;

/**
 * The memory of a window, as the agent moves bytes out of it and into it. All calls but {@link #close} come from the
 * agent's thread, none may wait: what takes time is begun and asked after.
 *
 * <pre>
 *   out:  openRead   →  readable?  →  the payload is sent from region()      →  release
 *   in:   openWrite  →  the payload is received into region()  →  arrived    →  written?  →  release
 *   copy: beginCopy  →  written?   →  release
 *   add:  beginAdd   →  written?   →  release
 *   peer: beginPeerCopy  →  readable?  →  the peer is told            →  release
 *   staged out: beginCopyOut  →  readable?  →  the peer is told       →  release
 *   staged in:  beginCopyIn   →  written?   →  release
 * </pre>
 *
 * <p>
 * A transfer of a communicator that ends before it is abandoned instead of released, at any point.
 *
 * <p>
 * Transfers may become readable and written in another order than they were begun; the agent keeps signals behind the
 * puts they belong to. A memory that the network reaches itself gives its own region out; one that it does not (a
 * GPU's) gives out staging buffers of its own, of at least {@link GinOptions#chunkBytes}, and copies.
 */
public interface WindowMemory extends AutoCloseable {

    /**
     * The window's size.
     *
     * @return bytes
     */
    long bytes();

    /**
     * Begins to make bytes readable for the network. The range was checked.
     *
     * @param transfer told its place
     * @param offset   in the window
     * @param bytes    1 to the communicator's chunk
     * @return false if there is no room to stage: the agent asks again
     */
    boolean openRead(WindowTransfer transfer, long offset, long bytes);

    /**
     * Whether the payload lies at the transfer's place.
     *
     * @param transfer that was opened for reading
     * @return true once it may be sent
     */
    boolean readable(WindowTransfer transfer);

    /**
     * Whether a source may be written again as soon as it is readable for the network: it was copied. Otherwise the
     * network reads the window itself until the frame is sent. A put is complete, for its counter and for a flush, when
     * its source is free.
     *
     * @return the same for all transfers
     */
    boolean isCopied();

    /**
     * Gives bytes that will arrive a place. The range was checked.
     *
     * @param transfer told its place
     * @param offset   in the window
     * @param bytes    1 to the communicator's chunk
     * @return false if there is no room to stage: the agent asks again
     */
    boolean openWrite(WindowTransfer transfer, long offset, long bytes);

    /**
     * The payload has arrived at the transfer's place: it may be written to the window from now on.
     *
     * @param transfer that was opened for writing
     */
    void arrived(WindowTransfer transfer);

    /**
     * Whether all was written, and a kernel that is told so now will see it.
     *
     * @param transfer whose bytes arrived, or which is a copy or an add
     * @return true once it is so
     */
    boolean written(WindowTransfer transfer);

    /**
     * Begins a copy from another window of the same communicator. The ranges were checked; the window's memories are of
     * one kind.
     *
     * @param transfer     for what the memory must remember
     * @param offset       in this window
     * @param source       the other window's memory, or this one
     * @param sourceOffset in that
     * @param bytes        1 to the communicator's chunk
     * @return false if too much is under way: the agent asks again
     */
    boolean beginCopy(WindowTransfer transfer, long offset, WindowMemory source, long sourceOffset, long bytes);

    /**
     * Begins to add to 8 bytes of the window.
     *
     * @param transfer for what the memory must remember
     * @param offset   a multiple of 8; checked
     * @param value    may wrap
     * @return false if too much is under way: the agent asks again
     */
    boolean beginAdd(WindowTransfer transfer, long offset, long value);

    /**
     * How much of the same window of a peer this rank's device reads and writes by itself, without staging and without
     * the network.
     *
     * @param peer a rank
     * @return the size of the peer's memory in bytes; 0 if it is out of reach, as most is
     */
    default long reach(int peer) {
        return 0;
    }

    /**
     * Begins a copy to the same window of a peer that is in {@link #reach}. It is {@link #readable} once the peer's
     * kernels would see the bytes.
     *
     * @param transfer     for what the memory must remember
     * @param peer         whose memory
     * @param offset       in the peer's window
     * @param source       the memory of one of this rank's windows
     * @param sourceOffset in that
     * @param bytes        1 or more
     * @return false if too much is under way: the agent asks again
     */
    default boolean beginPeerCopy(WindowTransfer transfer, int peer, long offset, WindowMemory source,
            long sourceOffset, long bytes) {
        throw new UnsupportedOperationException("rank " + peer + " is not within reach");
    }

    /**
     * Begins a copy from the same window of a peer that is in {@link #reach}. It is {@link #readable} once this rank's
     * kernels would see the bytes.
     *
     * @param transfer     for what the memory must remember
     * @param peer         whose memory
     * @param offset       in the peer's window
     * @param target       the memory of one of this rank's windows
     * @param targetOffset in that
     * @param bytes        1 or more
     * @return false if too much is under way: the agent asks again
     */
    default boolean beginPeerRead(WindowTransfer transfer, int peer, long offset, WindowMemory target,
            long targetOffset, long bytes) {
        throw new UnsupportedOperationException("rank " + peer + " is not within reach");
    }

    /**
     * Begins a copy to memory that is shared with a peer. It is {@link #readable} once the peer's device would see the
     * bytes; the source is free then.
     *
     * @param transfer   for what the memory must remember
     * @param offset     in the window; checked
     * @param ring       what is shared
     * @param ringOffset where in its memory the bytes go
     * @param bytes      1 to the communicator's chunk
     * @return false if too much is under way: the agent asks again
     */
    boolean beginCopyOut(WindowTransfer transfer, long offset, StagingRing ring, long ringOffset, long bytes);

    /**
     * Begins a copy from memory that is shared with a peer, where the bytes already are.
     *
     * @param transfer   for what the memory must remember
     * @param offset     in the window; checked
     * @param ring       what is shared
     * @param ringOffset where in its memory the bytes are
     * @param bytes      1 to the communicator's chunk
     * @return false if too much is under way: the agent asks again
     */
    boolean beginCopyIn(WindowTransfer transfer, long offset, StagingRing ring, long ringOffset, long bytes);

    /**
     * The transfer is over: its place may be given to another.
     *
     * @param transfer that was opened or begun
     */
    void release(WindowTransfer transfer);

    /**
     * Instead of {@link #release}, wherever the transfer stands: nobody waits for it any more, and the network lets its
     * place alone. Copies of it may still be under way; only when they are over may its place be given to another.
     *
     * @param transfer that was opened or begun
     */
    void abandon(WindowTransfer transfer);

    /**
     * Waits for what is under way, and gives back what was taken. Called once, by whoever closes the window, when no
     * transfer is open any more.
     */
    @Override
    void close();
}
