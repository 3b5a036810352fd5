package org.millrace.net;

import org.jspecify.annotations.Nullable;

/**
 * The sending end of a connection. Frames arrive in the order in which they were offered. Used by one thread at a time.
 */
public interface FrameSender extends FrameEnd {

    /**
     * Begins to send a frame. The header is copied before this method returns. The network may read the payload at any
     * time until {@link #framesCompleted()} counts the frame.
     *
     * @param header the frame's words and payload length
     * @param region region of the payload; null only if the length is 0
     * @param offset offset of the payload's first byte in the region
     * @return false if the maximum number of frames is in flight; the caller then calls {@link #progress()} and offers
     *         the frame again
     * @throws ConnectionException if the connection is lost
     */
    boolean offer(FrameHeader header, @Nullable MemoryRegion region, long offset);

    /**
     * {@return number of frames sent so far; the count only increases} The caller may overwrite the memory of a counted
     * frame's payload.
     */
    long framesCompleted();

    /**
     * {@return whether payloads in the given device memory can be sent at present} A frame with such a payload is
     * offered like any other.
     *
     * @param memory memory of the payloads
     */
    default boolean sendsFrom(DeviceRegion memory) {
        return false;
    }

    /**
     * {@return whether {@link #progress()} copies payloads with the processor} A second thread can then speed up the
     * transfer.
     */
    default boolean isProcessorBound() {
        return false;
    }

    /**
     * Accelerates the completion of frames in flight, because the owner needs the memory of their payloads. If the
     * sender can copy the payloads, it copies them, and the frames are complete before the peer has read the payloads.
     * A sender that cannot copy the payloads asks the peer for an immediate acknowledgement.
     *
     * @throws ConnectionException if the connection is lost
     */
    default void settle() {
        // This default method does nothing. It is for a sender that completes frames as soon as it can, for instance
        // because it copies every payload.
    }

    /**
     * Ends the connection with a shutdown message to the peer. Frames in flight are sent first, unless this would
     * require a wait. May be called by any thread, and repeatedly. The owner must not call any other method at the same
     * time or afterwards.
     */
    @Override
    void close();

    /**
     * Ends the connection without a shutdown message. Frames in flight are dropped, and the peer sees a lost
     * connection. Used for a communicator that failed, and by tests. May be called under the same conditions as
     * {@link #close}.
     */
    void abort();

    /**
     * A connection with one or several rails. A fault that a test has planted can cut one of the rails. Called by the
     * thread that serves the connection.
     */
    public interface Railed {

        /** {@return number of rails when the connection was established: 1 or more} */
        int rails();

        /**
         * Resets all streams of one rail immediately. The reset has the effect of a pulled cable or a failed card. The
         * connection detects the loss when it next makes progress.
         *
         * @param rail 0 to {@code rails() - 1}; the call has no effect on a rail that is lost already, or if the
         *             connection has only one rail
         */
        void cutRail(int rail);
    }
}
