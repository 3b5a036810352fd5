package org.millrace.gin;

/** Learns that a communicator has failed. */
@FunctionalInterface
public interface GinFailureListener {
    /**
     * Called once, on the thread that found it, before anybody who waits is told.
     *
     * @param failure what happened
     */
    void failed(Throwable failure);
}
