package org.millrace.cli;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.millrace.DataType;
import org.millrace.Millrace;
import org.millrace.MillraceException;
import org.millrace.Operation;

/** The smallest measurement: two ranks, one all-reduce, checked. */
public final class SelfTest {

    private static final Duration DEADLINE = Duration.ofSeconds(30);
    private static final long BYTES = 64 << 10;

    private SelfTest() {}

    /** Two threads of this process; returns what went wrong. */
    public static List<String> run(Map<String, String> settings) {
        PerfPlan plan = new PerfPlan(Operation.ALL_REDUCE, 2,
                List.of(new PerfPlan.Case(0, DataType.FLOAT32, Reduction.SUM, BYTES / Float.BYTES, 1, 1)),
                PerfPlan.Checking.AFTERWARDS, 1, DEADLINE, false, false);
        PerfResults results = new PerfResults(plan);
        List<String> failures = new ArrayList<>();
        try {
            Millrace.provider(settings);
            RankRun.run(plan.ranks(),
                    (rendezvous, events) -> new ThreadRanks(plan.ranks(),
                            rank -> new PerfWorker(plan, rank, rendezvous, settings), events),
                    RunDeadline.after(DEADLINE), PerfEvent.class, results::add)
                    .forEach(failure -> failures.add(failure.message()));
            results.takeComplete();
        } catch (IllegalArgumentException | MillraceException refused) {
            failures.add(refused.getMessage());
        }
        if (results.wrong() > 0) {
            failures.add("an all-reduce of two ranks gave " + results.wrong() + " wrong elements");
        }
        return failures;
    }
}
