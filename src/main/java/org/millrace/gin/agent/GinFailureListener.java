package org.millrace.gin.agent;

/** Learns that a communicator has failed, or stands still. */
@FunctionalInterface
public interface GinFailureListener {
    /**
     * Called once, on the thread that found it, before anybody who waits is told.
     *
     * @param failure what happened
     */
    void failed(Throwable failure);

    /**
     * Called, on the agent's thread, when something has been under way for long without any progress; again after as
     * long.
     *
     * @param what the oldest of it, for messages
     */
    default void stalled(String what) {
        // those who wait have deadlines of their own
    }
}
