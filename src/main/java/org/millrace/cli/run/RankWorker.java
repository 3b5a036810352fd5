package org.millrace.cli.run;

import java.util.function.Consumer;

/** Work of one rank, which runs as a thread or as a process. */
public interface RankWorker {

    /** Does all the work. An exception that it throws is reported to the other ranks and the user. */
    void run(Reporter reporter) throws Exception;

    /**
     * Ends the work early: the rank's communicator fails, and with it the current operation. Callable from any thread.
     */
    void abort();

    /** Passes on the reports of one rank, and ensures that the last one is Finished or Failed. Used by one thread. */
    final class Reporter {

        private final int rank;
        private final Consumer<RankEvent> events;
        private boolean failed;

        Reporter(int rank, Consumer<RankEvent> events) {
            this.rank = rank;
            this.events = events;
        }

        void run(RankWorker worker) {
            try {
                worker.run(this);
                if (!failed) {
                    events.accept(new RankEvent.Finished(rank));
                }
            } catch (Throwable failure) { // the other ranks must learn of any failure
                fail(failure);
            }
        }

        public void tell(RankEvent event) {
            events.accept(event);
        }

        /** Reports the first failure. Ignores later ones, because failures of the cleanup add no information. */
        public void fail(Throwable failure) {
            if (!failed) {
                failed = true;
                events.accept(RankEvent.Failed.of(rank, failure));
            }
        }
    }
}
