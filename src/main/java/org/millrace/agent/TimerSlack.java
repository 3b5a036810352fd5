package org.millrace.agent;

import org.millrace.foreign.CFunction;

/**
 * How late Linux may wake a thread that sleeps for a time: 50 us unless it is told otherwise, so that it can wake
 * several at once.
 */
final class TimerSlack {

    private static final long PR_SET_TIMERSLACK = 29;
    private static final long LEAST_NANOS = 1;

    private TimerSlack() {}

    /** The calling thread is woken in time from now on, where the system is Linux; elsewhere nothing changes. */
    static void least() {
        if (!System.getProperty("os.name").equals("Linux")) {
            return;
        }
        CFunction.named("prctl").call(PR_SET_TIMERSLACK, LEAST_NANOS); // a refusal leaves it as it was
    }
}
