package org.millrace.agent;

/** What a polling thread does after a pass. One instance serves one thread. */
public interface IdleStrategy {

    /** Called after every pass. */
    void idle(int workCount);

    /** Whether the thread has slept in the last call of {@link #idle}. Called by the thread. */
    default boolean slept() {
        return false;
    }

    /**
     * Says that work is to come, so that a thread that sleeps need not wait for its time to be over. Called by any
     * thread.
     */
    default void wake(Thread thread) {
        // a strategy with short sleeps need not be woken
    }

    /**
     * States that the thread makes no passes for now, so that it counts no longer as a thread that polls. Called by the
     * thread.
     */
    default void pause() {
        // a strategy that does not count needs not be told
    }

    /** Begins anew, as what the strategy has learnt of its core is over. Called by any thread. */
    default void forget() {
        // most learn nothing
    }
}
