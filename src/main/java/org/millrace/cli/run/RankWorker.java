package org.millrace.cli.run;

import java.util.function.Consumer;

/** Work of one rank, on a thread or in a process. */
public interface RankWorker {

    /** Does all the work. A thrown exception is reported to the user, and the run ends the other ranks. */
    void run(Reporter reporter) throws Exception;

    /** Ends the work early: makes the rank's communicator and its current operation fail. Callable from any thread. */
    void abort();

    /**
     * Passes on the reports of one rank, and ensures that the last report is Finished or Failed. Used by one thread.
     */
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
            } catch (Throwable failure) { // every failure must be reported, so that the other ranks end
                fail(failure);
            }
        }

        public void tell(RankEvent event) {
            events.accept(event);
        }

        /** Reports the first failure. Ignores later failures, because failures of the cleanup add no information. */
        public void fail(Throwable failure) {
            if (!failed) {
                failed = true;
                events.accept(RankEvent.Failed.of(rank, failure));
            }
        }
    }
}
