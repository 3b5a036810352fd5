package org.millrace.cli.gin;

import java.lang.foreign.Arena;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.cli.base.Converters;
import org.millrace.cli.base.Json;
import org.millrace.cli.base.ResultTable;
import org.millrace.cli.base.RunJson;
import org.millrace.cli.base.Subcommand;
import org.millrace.cli.run.RankEvent;
import org.millrace.cli.run.RankRun;
import org.millrace.cli.run.RankWorker;
import org.millrace.cli.run.RunDeadline;
import org.millrace.cli.run.ThreadRanks;
import org.millrace.config.Configuration;
import org.millrace.config.Settings;
import org.millrace.config.ValueTypes;
import org.millrace.engine.EngineProvider;
import org.millrace.engine.GinRank;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code millrace gin PATTERN}. */
@Command(
        name = "gin",
        description = {"Measure GPU-initiated networking on the emulated device, and check what arrives.",
                "Blocks post descriptors to the queues that NCCL's device side uses; each rank is a thread with an "
                        + "agent that carries them out over the network."},
        sortOptions = false)
public final class GinCommand extends Subcommand {

    /** Parses patterns, in upper or lower case. */
    static final class PatternConverter extends Converters.OfValueType<GinPattern> {
        PatternConverter() {
            super(ValueTypes.choices(GinPattern.class));
        }
    }

    /** Parses releases of the descriptor format, in upper or lower case. */
    static final class FormatConverter extends Converters.OfValueType<GinDescriptorFormat> {
        FormatConverter() {
            super(ValueTypes.choices(GinDescriptorFormat.class));
        }
    }

    @Parameters(
            paramLabel = "PATTERN",
            converter = PatternConverter.class,
            description = "put, signal: to and fro between two ranks. alltoall: every rank to every rank. flood: many "
                    + "blocks put at once.")
    private GinPattern pattern;

    @Option(
            names = {"-r", "--ranks"},
            paramLabel = "N",
            defaultValue = "2",
            converter = Converters.Few.class,
            description = "Number of ranks (default: ${DEFAULT-VALUE}).")
    private int ranks;

    @Option(
            names = {"-b", "--minbytes"},
            paramLabel = "SIZE",
            defaultValue = "8",
            converter = Converters.Size.class,
            description = "Smallest put (default: ${DEFAULT-VALUE}).")
    private long min;

    @Option(
            names = {"-e", "--maxbytes"},
            paramLabel = "SIZE",
            defaultValue = "16M",
            converter = Converters.Size.class,
            description = "Largest put (default: ${DEFAULT-VALUE}).")
    private long max;

    @Option(
            names = {"-n", "--iters"},
            paramLabel = "N",
            defaultValue = "2000",
            converter = Converters.Count.class,
            description = "Rounds that are timed, fewer for large sizes (default: ${DEFAULT-VALUE}).")
    private int iterations;

    @Option(
            names = "--contexts",
            paramLabel = "N",
            defaultValue = "4",
            converter = Converters.Few.class,
            description = "Number of contexts (default: ${DEFAULT-VALUE}).")
    private int contexts;

    @Option(
            names = "--blocks",
            paramLabel = "N",
            defaultValue = "64",
            converter = Converters.Few.class,
            description = "flood: blocks of each rank, which share the contexts (default: ${DEFAULT-VALUE}).")
    private int blocks;

    @Option(
            names = "--format",
            paramLabel = "RELEASE",
            defaultValue = "V30",
            converter = FormatConverter.class,
            description = "Whose descriptors: ${COMPLETION-CANDIDATES} (default: ${DEFAULT-VALUE}).")
    private GinDescriptorFormat format;

    @Option(
            names = "--net",
            paramLabel = "NAME",
            description = "What carries the data; short for -D MILLRACE_NET=NAME.")
    private @Nullable String net;

    @Option(
            names = "--json",
            paramLabel = "FILE",
            converter = Converters.ResultFile.class,
            description = "Write the results there too, for programs.")
    private @Nullable Path json;

    @Option(
            names = "--deadline",
            paramLabel = "TIME",
            defaultValue = "10m",
            converter = Converters.Time.class,
            description = "End the run after this, finished or not (default: ${DEFAULT-VALUE}).")
    private Duration deadline;

    @Override
    public Integer call() {
        require(ranks >= 2 || pattern == GinPattern.ALLTOALL, pattern + " needs two ranks (-r 2)");
        require(ranks == 2 || pattern != GinPattern.PUT && pattern != GinPattern.SIGNAL,
                pattern + " is to and fro between two ranks (-r 2); alltoall and flood take more");
        require(min <= max, "the smallest put (-b) is larger than the largest (-e)");
        GinPlan plan = new GinPlan(pattern, ranks, min, max, iterations, contexts, blocks, format);
        Map<String, String> settings = parent.settings();
        if (net != null) {
            settings.put(Settings.NETWORK.name(), net);
        }
        // The settings are checked here, so that this process reports an error once. Without this check, every rank
        // would report the error.
        EngineProvider.requireUsable(Configuration.load(settings));
        ResultTable table = new ResultTable(spec.commandLine().getOut());
        table.say(
                "# " + pattern + ", ranks: " + ranks + " (threads) contexts: " + contexts + " descriptors: " + format);
        List<RankRun.Failure> failures = new GinRun(plan, settings, table).run(deadline);
        writeJson(plan, settings, table, failures.stream().map(RankRun.Failure::message).toList());
        RankRun.print(failures, spec.commandLine().getErr(), parent.stackTraces());
        return failures.isEmpty() ? ExitCode.OK : ExitCode.SOFTWARE;
    }

    private void writeJson(GinPlan plan, Map<String, String> settings, ResultTable table, List<String> failures) {
        if (json == null) {
            return;
        }
        Map<String, Object> document = plan.json();
        document.put("environment", RunJson.environment());
        document.put("settings", RunJson.settings(Configuration.load(settings)));
        document.put("results", table.rows());
        document.put("failures", failures);
        Json.save("--json", json, Json.write(document));
    }

    /** Runs a pattern on the emulated device, with ranks as threads. */
    record GinRun(GinPlan plan, Map<String, String> settings, ResultTable table) {

        /**
         * Runs all ranks. Rank 0 prints the results. This method then prints, for each rank, the number of descriptors
         * that its agent served.
         */
        List<RankRun.Failure> run(Duration deadline) {
            @Nullable
            String[] served = new String[plan.ranks()];
            List<RankRun.Failure> failures = RankRun.run(plan.ranks(),
                    (rendezvous, events) -> new ThreadRanks(plan.ranks(), rank -> new Worker(rank, rendezvous), events),
                    RunDeadline.after(deadline), Served.class, event -> served[event.rank()] = event.text());
            for (int rank = 0; failures.isEmpty() && rank < plan.ranks(); rank++) {
                table.say("# rank " + rank + ": " + served[rank]);
            }
            return failures;
        }

        /** Report of a rank: a text for the user about the descriptors that its agent served. */
        private record Served(int rank, String text) implements RankEvent {
        }

        /** One rank, from its join to its end. */
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
                    // Volatile write before the read of `aborted`. abort() writes `aborted` before it reads `joined`,
                    // so that at least one of the two threads sees the other's write (Dekker).
                    joined = rank;
                    try {
                        if (aborted) {
                            throw ended();
                        }
                        plan.pattern().run(plan, rank, arena, table);
                        rank.barrier();
                        reporter.tell(new Served(number, rank.communicator().served().toString()));
                    } catch (Throwable thrown) {
                        reporter.fail(thrown);
                        // The failure is sent to the other ranks, so that they do not wait for this rank.
                        rank.communicator().fail(thrown);
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
}
