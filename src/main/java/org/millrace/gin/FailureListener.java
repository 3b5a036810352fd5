package org.millrace.gin;

/** Learns that a communicator has failed, or stands still. */
@FunctionalInterface
public interface FailureListener {
    /** Called once, on the thread that found it, before anybody who waits is told. */
    void failed(Throwable failure);

    /**
     * Called, on the agent's thread, when something has been under way for long without any progress; again after as
     * long.
     */
    default void stalled(String what) {
        // those who wait have deadlines of their own
    }

    /** Whether kernels wait without a deadline: they are looked after when the communicator has failed. */
    default boolean hasKernels() {
        return false;
    }
}
