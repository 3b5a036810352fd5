package org.millrace.cli.launch;

/** What one rank does, as a thread or as a process. */
public interface RankWorker {

    /**
     * Does all of it, and reports everything, failures included, as events. The last is {@link RankEvent.Finished} or
     * {@link RankEvent.Failed}.
     */
    void run();

    /** Ends it early: the rank's communicator fails, and with it what the rank is doing. Safe from any thread. */
    void abort();
}
