package org.millrace.gin;

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
 * What opens or begins a transfer keeps in it what it has to remember, and returns false if there is no room now: the
 * agent asks again. Ranges were checked, and have between 1 byte and the communicator's chunk; those of copies between
 * devices may be longer. If the communicator ends before a transfer does, the transfer is abandoned, at any point,
 * instead of released. What needs no step of these leaves it out.
 *
 * <p>
 * Transfers may become readable and written in another order than they were begun; the agent keeps signals behind the
 * puts they belong to. A memory that the network reaches itself gives its own region out; one that it does not (a
 * GPU's) gives out staging buffers of its own, of at least {@link GinOptions#chunkBytes}, and copies.
 */
public interface WindowMemory extends AutoCloseable {

    long bytes();

    /** Begins to make bytes readable for the network; says where they will be. */
    boolean openRead(WindowTransfer transfer, long offset, long bytes);

    /** Whether the payload lies at the transfer's place, and may be sent. */
    boolean readable(WindowTransfer transfer);

    /**
     * Whether a source may be written again as soon as it is readable for the network: it was copied. Otherwise the
     * network reads the window itself until the frame is sent. A put is complete, for its counter and for a flush, when
     * its source is free. The same for all transfers.
     */
    default boolean isCopied() {
        return false;
    }

    /** Gives bytes that will arrive a place. */
    boolean openWrite(WindowTransfer transfer, long offset, long bytes);

    /** The payload has arrived at the transfer's place: it may be written to the window from now on. */
    default void arrived(WindowTransfer transfer) {}

    /**
     * Whether all was written, and a kernel that is told so now will see it: of what arrived, of a copy or of an add.
     */
    boolean written(WindowTransfer transfer);

    /**
     * Begins a copy from a window of the same communicator, this one or another. Where there is a GPU, any of their
     * memories may be the GPU's or the host's.
     */
    boolean beginCopy(WindowTransfer transfer, long offset, WindowMemory source, long sourceOffset, long bytes);

    /** Begins to add to 8 bytes of the window, at a multiple of 8; the sum may wrap. */
    boolean beginAdd(WindowTransfer transfer, long offset, long value);

    /**
     * How many bytes of the same window of a peer this rank's device reads and writes by itself, without staging and
     * without the network: all of the peer's memory, or 0 if it is out of reach, as most is.
     */
    default long reach(int peer) {
        return 0;
    }

    /**
     * Begins a copy to the same window of a peer that is in {@link #reach}. It is {@link #readable} once the peer's
     * kernels would see the bytes.
     */
    default boolean beginPeerCopy(WindowTransfer transfer, int peer, long offset, WindowMemory source,
            long sourceOffset, long bytes) {
        throw new UnsupportedOperationException("rank " + peer + " is not within reach");
    }

    /**
     * Begins a copy from the same window of a peer that is in {@link #reach}. It is {@link #readable} once this rank's
     * kernels would see the bytes.
     */
    default boolean beginPeerRead(WindowTransfer transfer, int peer, long offset, WindowMemory target,
            long targetOffset, long bytes) {
        throw new UnsupportedOperationException("rank " + peer + " is not within reach");
    }

    /**
     * Begins a copy to memory that is shared with a peer. It is {@link #readable} once the peer's device would see the
     * bytes; the source is free then.
     */
    boolean beginCopyOut(WindowTransfer transfer, long offset, StagingRing ring, long ringOffset, long bytes);

    /** Begins a copy from memory that is shared with a peer, where the bytes already are. */
    boolean beginCopyIn(WindowTransfer transfer, long offset, StagingRing ring, long ringOffset, long bytes);

    /** The transfer is over: its place may be given to another. */
    default void release(WindowTransfer transfer) {}

    /**
     * Instead of {@link #release}, wherever the transfer stands: nobody waits for it any more, and the network lets its
     * place alone. Copies of it may still be under way; only when they are over may its place be given to another.
     */
    default void abandon(WindowTransfer transfer) {}

    /**
     * Waits for what is under way, and gives back what was taken. Called once, when the window is closed and no
     * transfer is open any more.
     */
    @Override
    void close();
}
