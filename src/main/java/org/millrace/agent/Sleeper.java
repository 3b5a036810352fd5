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
     * Sleeps for a time in nanoseconds, or until another thread or process wakes the thread. Some sleepers are woken
     * through shared memory. The first call of such a sleeper announces the sleep in that memory, and returns false
     * without a sleep. The thread must then make another pass before it calls this method again.
     *
     * @return false if this call announced the sleep and did not sleep
     */
    boolean sleep(long nanos);

    /** Withdraws the announcement of a sleep, because the thread has work or makes no more passes. */
    default void awake() {
        // Does nothing by default, because most sleepers do not announce a sleep.
    }

    /** Wakes the thread. Callable from any thread. */
    default void wake(Thread thread) {
        LockSupport.unpark(thread);
    }
}
