package org.millrace.agent;

/** Action of a polling thread after a pass. One instance serves one thread. */
public interface IdleStrategy {

    /** Called after every pass. */
    void idle(int workCount);

    /** Returns whether the thread has slept in the last call of {@link #idle}. Called by the thread. */
    default boolean slept() {
        return false;
    }

    /** Announces work, so that a sleeping thread need not sleep to the end of its time. Callable from any thread. */
    default void wake(Thread thread) {
        // A strategy with short sleeps need not be woken.
    }

    /**
     * States that the thread makes no passes for now, so that it does not count as a polling thread. Called by the
     * thread.
     */
    default void pause() {
        // Only a strategy that counts polling threads needs to do something here.
    }

    /** Discards all observations of the load on the thread's core, and begins anew. Callable from any thread. */
    default void forget() {
        // Most strategies have no observations that they could discard.
    }
}
