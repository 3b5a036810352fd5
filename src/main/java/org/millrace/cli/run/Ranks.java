package org.millrace.cli.run;

import java.time.Duration;

/** The ranks of a run, as threads or processes. */
public interface Ranks {

    /** Starts all ranks, which then report events. The last event of every rank is Finished or Failed. */
    void start();

    /**
     * Ends ranks that still run. Returns when all ranks have ended, or when this method has tried every way to end
     * them. Any thread may call this method, also several times.
     */
    void stop();

    /** Waits until the ranks' threads or processes have ended. Returns false on a timeout. */
    boolean awaitEnd(Duration patience);
}
