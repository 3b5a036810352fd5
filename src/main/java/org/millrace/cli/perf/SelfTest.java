package org.millrace.cli.perf;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.millrace.DataType;
import org.millrace.Millrace;
import org.millrace.MillraceException;
import org.millrace.cli.check.CollectiveCall;
import org.millrace.cli.check.PerfCase;
import org.millrace.cli.check.Reduction;
import org.millrace.cli.launch.Ranks;
import org.millrace.cli.launch.RunScope;
import org.millrace.cli.launch.ThreadRanks;

/** The smallest measurement: two ranks, one all-reduce, checked. */
public final class SelfTest {

    private static final Duration DEADLINE = Duration.ofSeconds(30);
    private static final long BYTES = 64 << 10;

    private SelfTest() {}

    /**
     * Runs it with two threads of this process.
     *
     * @param settings the settings, the device among them; names are those of the environment variables
     * @return what went wrong; empty if nothing did
     */
    public static List<String> run(Map<String, String> settings) {
        PerfPlan plan = new PerfPlan(CollectiveCall.ALL_REDUCE, 2,
                List.of(new PerfCase(0, DataType.FLOAT32, Reduction.SUM, BYTES / Float.BYTES, 1, 1)),
                Checking.AFTERWARDS, 1, DEADLINE);
        PerfResults results = new PerfResults(plan);
        List<String> failures = new ArrayList<>();
        try (RunScope scope = new RunScope()) {
            Millrace.provider(settings);
            PerfRun run = new PerfRun(plan, results, new Silence());
            Ranks ranks = new ThreadRanks(plan.ranks(),
                    rank -> new PerfWorker(plan, rank, scope.rendezvous(), settings, run.events()));
            scope.owns(ranks);
            run.run(ranks).forEach(failure -> failures.add(failure.message()));
        } catch (IllegalArgumentException | MillraceException refused) {
            failures.add(refused.getMessage());
        }
        if (results.wrong() > 0) {
            failures.add("an all-reduce of two ranks gave " + results.wrong() + " wrong elements");
        }
        return failures;
    }

    private static final class Silence implements PerfRun.Display {
        @Override
        public void joined() {}

        @Override
        public void row(PerfResults.Row row) {}

        @Override
        public void waiting() {}
    }
}
