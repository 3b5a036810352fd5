package org.millrace.agent;

import java.util.concurrent.locks.LockSupport;

/** Sleeps between two passes of a polling thread. One instance serves one thread at a time. */
public interface Sleeper {

    /** Parks the thread. */
    Sleeper PARK = nanos -> {
        LockSupport.parkNanos(nanos);
        return true;
    };

    /**
     * Sleeps for a time in nanoseconds, or until another thread or process wakes the thread. A sleeper that is woken
     * through shared memory first only announces the sleep in that memory, and returns false. The thread must then make
     * another pass before it calls this method again.
     *
     * @return false if it only announced the sleep
     */
    boolean sleep(long nanos);

    /** Withdraws the announcement of a sleep, because the thread has work or makes no more passes. */
    default void awake() {
        // By default, a sleep is not announced.
    }

    /** Wakes the thread. Callable from any thread. */
    default void wake(Thread thread) {
        LockSupport.unpark(thread);
    }
}
