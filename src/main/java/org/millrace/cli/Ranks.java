package org.millrace.cli;

import java.time.Duration;

/** The ranks of a run, as threads or processes. */
interface Ranks {

    /** Starts all ranks. From then on they report events. The last event of every rank is Finished or Failed. */
    void start();

    /**
     * Makes running ranks give up. Returns when all have ended or nothing more can be done. Callable from any thread,
     * and more than once.
     */
    void stop();

    /** Waits until the ranks' threads or processes have ended. Returns false if the time passed first. */
    boolean awaitEnd(Duration patience);
}
