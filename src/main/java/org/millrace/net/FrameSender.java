package org.millrace.net;

import org.jspecify.annotations.Nullable;

/** The sending end of a connection. Frames arrive in the order in which they were offered. One thread at a time. */
public interface FrameSender extends FrameEnd {

    /**
     * Begins to send a frame. The header is copied before this returns; the payload is read later, until
     * {@link #framesCompleted()} counts the frame.
     *
     * @param header the frame's words and payload length
     * @param region where the payload lies; null only if the length is 0
     * @param offset of the payload's first byte in the region
     * @return false if as many frames as the connection can hold are in flight: make {@link #progress()} and offer
     *         again
     * @throws ConnectionException if the connection is lost
     */
    boolean offer(FrameHeader header, @Nullable MemoryRegion region, long offset);

    /**
     * {@return how many frames have been sent so far, a count that only grows: the payload of a frame that is counted
     * here may be overwritten}
     */
    long framesCompleted();

    /**
     * {@return whether payloads may lie in a device's memory now: such a frame can be offered as any other}
     *
     * @param memory where they would lie
     */
    default boolean sendsFrom(DeviceRegion memory) {
        return false;
    }

    /** {@return whether {@link #progress()} copies payloads with a processor, for which another thread may be had} */
    default boolean isProcessorBound() {
        return false;
    }

    /**
     * Completes frames in flight without the peer where that is possible, by copying their payloads, as their memory is
     * needed before the peer has come for them; and otherwise has the peer asked for an acknowledgement at once.
     *
     * @throws ConnectionException if the connection is lost
     */
    default void settle() {
        // what a sender copies is complete as soon as it can be
    }

    /**
     * Ends the connection. Frames in flight are sent first if that needs no waiting; the peer learns that the end was
     * meant. Safe from any thread once the owner makes no more calls, and more than once.
     */
    @Override
    void close();

    /**
     * Ends the connection without a word: frames in flight are dropped, and the peer sees a connection that is lost.
     * For a communicator that failed, and for tests of that. Safe as {@link #close} is.
     */
    void abort();

    /**
     * A connection that may have several rails, of which one can be cut on purpose: for tests. Called on the
     * connection's thread.
     */
    public interface Railed {

        /** {@return how many rails the connection was made with: 1 or more} */
        int rails();

        /**
         * Resets the streams of one rail at once, as a pulled cable or a failed card would end them. The connection
         * notices when it next makes progress.
         *
         * @param rail 0 to {@code rails() - 1}, if there are several; one that is lost already is left alone
         */
        void cutRail(int rail);
    }
}
