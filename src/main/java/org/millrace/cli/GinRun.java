package org.millrace.cli;

import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.engine.GinRank;

/** A pattern on the emulated device: ranks are threads. */
record GinRun(GinPlan plan, Map<String, String> settings, ResultTable table) {

    /** Runs all ranks, of which rank 0 prints; then what each one's thread served. */
    List<RankRun.Failure> run(Duration deadline) {
        @Nullable
        String[] served = new String[plan.ranks()];
        List<RankRun.Failure> failures = RankRun.run(plan.ranks(),
                (rendezvous, events) -> new ThreadRanks(plan.ranks(), rank -> new Worker(rank, rendezvous), events),
                RunDeadline.after(deadline), GinEvent.Noted.class, noted -> served[noted.rank()] = noted.text());
        for (int rank = 0; failures.isEmpty() && rank < plan.ranks(); rank++) {
            table.say("# rank " + rank + ": " + served[rank]);
        }
        return failures;
    }

    /** One rank, from its meeting with the others to its end. */
    private final class Worker implements RankWorker {

        private final int number;
        private final String rendezvous;
        private volatile boolean aborted;
        private volatile @Nullable GinRank joined;

        Worker(int number, String rendezvous) {
            this.number = number;
            this.rendezvous = rendezvous;
        }

        @Override
        public void run(Reporter reporter) {
            try (Arena arena = Arena.ofShared();
                    GinRank rank = GinRank.join(rendezvous, number, plan.ranks(), settings)) {
                // before the look at `aborted`, which is set before `joined` is looked at: one of the two threads sees
                // the other (Dekker)
                joined = rank;
                try {
                    if (aborted) {
                        throw ended();
                    }
                    plan.pattern().run(plan, rank, arena, table);
                    rank.barrier();
                    reporter.tell(new GinEvent.Noted(number, rank.communicator().served().toString()));
                } catch (Throwable thrown) {
                    reporter.fail(thrown);
                    rank.communicator().fail(thrown); // the other ranks are not to wait for this one
                    throw thrown;
                }
            }
        }

        @Override
        public void abort() {
            aborted = true;
            GinRank rank = joined;
            if (rank != null) {
                rank.communicator().fail(ended());
            }
        }

        private static MillraceException ended() {
            return new MillraceException("the run was ended");
        }
    }
}
