package org.millrace.net;

import org.jspecify.annotations.Nullable;

/**
 * The sending end of a connection. Frames arrive in the order of the offers. Used by one thread at a time.
 */
public interface FrameSender extends FrameEnd {

    /**
     * Begins to send a frame. The header is copied before this returns. The payload is read later, until
     * {@link #framesCompleted()} counts the frame.
     *
     * @param header the frame's words and payload length
     * @param region region of the payload; null only if the length is 0
     * @param offset offset of the payload's first byte in the region
     * @return false if the maximum number of frames is in flight; the caller makes {@link #progress()} and offers again
     * @throws ConnectionException if the connection is lost
     */
    boolean offer(FrameHeader header, @Nullable MemoryRegion region, long offset);

    /**
     * {@return number of frames sent so far; the count only increases. The payload of a counted frame may be
     * overwritten}
     */
    long framesCompleted();

    /**
     * {@return whether payloads may lie in this device memory now. Such a frame is offered like any other}
     *
     * @param memory memory of the payloads
     */
    default boolean sendsFrom(DeviceRegion memory) {
        return false;
    }

    /** {@return whether {@link #progress()} copies payloads with the processor, so that a second thread can help} */
    default boolean isProcessorBound() {
        return false;
    }

    /**
     * Completes frames in flight without the peer by copying their payloads, where that is possible. Their memory is
     * needed before the peer has read it. Otherwise asks the peer for an immediate acknowledgement.
     *
     * @throws ConnectionException if the connection is lost
     */
    default void settle() {
        // a sender that copies completes frames as soon as it can
    }

    /**
     * Ends the connection in order. Frames in flight are sent first if that needs no waiting, and the peer learns that
     * the end was intended. Safe from any thread, and repeatedly, once the owner makes no more calls.
     */
    @Override
    void close();

    /**
     * Ends the connection without a shutdown message. Frames in flight are dropped, and the peer sees a lost
     * connection. Used for a communicator that failed, and by tests. Safe like {@link #close}.
     */
    void abort();

    /** A connection with one or several rails. Tests cut one of them on purpose. Called on the connection's thread. */
    public interface Railed {

        /** {@return number of rails when the connection was established: 1 or more} */
        int rails();

        /**
         * Resets the streams of one rail at once, like a pulled cable or a failed card. The connection notices it when
         * it next makes progress.
         *
         * @param rail 0 to {@code rails() - 1}, if the connection has several; a rail that is lost already is left
         *             alone
         */
        void cutRail(int rail);
    }
}
