package org.millrace.cli;

import java.time.Duration;

/** The ranks of a run, however they are run. */
interface Ranks {

    /** Lets all of them begin. From then on they report events; the last of every rank is Finished or Failed. */
    void start();

    /**
     * Makes ranks that still run give up. Returns when all have ended or nothing more can be done about it. Safe from
     * any thread, more than once.
     */
    void stop();

    /** Waits until the ranks' threads or processes have ended; false if the time passed first. */
    boolean awaitEnd(Duration patience);
}
