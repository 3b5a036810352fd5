package org.millrace.agent;

/** Action of a polling thread after a pass. One instance serves one thread. */
public interface IdleStrategy {

    /** Lets the thread spin, yield or sleep. Called after every pass, with the pass's amount of work. */
    void idle(int workCount);

    /** Returns whether the thread has slept in the last call of {@link #idle}. Called by the thread. */
    default boolean slept() {
        return false;
    }

    /** Announces work, so that a sleeping thread need not sleep to the end of its time. Callable from any thread. */
    default void wake(Thread thread) {
        // Does nothing by default, because a strategy with short sleeps needs no wake-up.
    }

    /**
     * States that the thread makes no passes for now, so that it does not count as a polling thread. Called by the
     * thread.
     */
    default void pause() {
        // Does nothing by default: only a strategy that counts polling threads overrides this method.
    }

    /** Discards all observations of the load on the thread's core, and begins anew. Callable from any thread. */
    default void forget() {
        // Does nothing by default, because most strategies keep no observations.
    }
}
