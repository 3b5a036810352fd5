package org.millrace.cli;

import java.util.function.Consumer;

/** What one rank does, as a thread or as a process. */
interface RankWorker {

    /** Does all of it; of what it throws the other ranks and the user are told. */
    void run(Reporter reporter) throws Exception;

    /** Ends it early: the rank's communicator fails, and with it what the rank is doing. Safe from any thread. */
    void abort();

    /** Takes what one rank reports, and sees to it that it ends with Finished or Failed. Used by one thread. */
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
            } catch (Throwable failure) { // whatever it is, the other ranks must hear of it
                fail(failure);
            }
        }

        void tell(RankEvent event) {
            events.accept(event);
        }

        /**
         * Reports the first failure before its consequences: what goes wrong when that is cleaned up says nothing new.
         */
        void fail(Throwable failure) {
            if (!failed) {
                failed = true;
                events.accept(RankEvent.Failed.of(rank, failure));
            }
        }
    }
}
