package org.millrace.cli.rehearsal;

import java.io.IOException;
import java.io.PrintWriter;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.millrace.Communicator;
import org.millrace.DeviceStream;
import org.millrace.cli.base.Columns;
import org.millrace.cli.base.Converters;
import org.millrace.cli.base.Subcommand;
import org.millrace.cli.base.Units;
import org.millrace.cli.run.CommunicatorWorker;
import org.millrace.cli.run.JavaCommand;
import org.millrace.cli.run.ProcessRanks;
import org.millrace.cli.run.RankEvent;
import org.millrace.cli.run.RankMain;
import org.millrace.cli.run.RankRun;
import org.millrace.cli.run.RunDeadline;
import org.millrace.config.Configuration;
import org.millrace.config.Settings;
import org.millrace.net.link.LinkNetwork;
import org.millrace.plugin.StartupCache;
import org.millrace.rehearsal.RecordedRun.Call;
import org.millrace.rehearsal.RecordedRun;
import org.millrace.rehearsal.RecordingReader;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;

/** {@code millrace replay DIR}. */
@Command(
        name = "replay",
        description = {
                "Do what was recorded again, on the emulated device: the same operations with the pauses that the"
                        + " program made between them, over any network.",
                "Each rank is a process of this host. What they took is printed beside what they took when they were"
                        + " recorded."},
        sortOptions = false)
public final class ReplayCommand extends Subcommand {

    /** Size of the replay's own recording, in bytes. The replay records only operations, without data and steps. */
    private static final long REPLAY_BYTES = 1L << 30;

    @Parameters(paramLabel = "DIR", description = "What MILLRACE_RECORD was.")
    private Path directory;

    @Option(
            names = "--link",
            paramLabel = "LINK",
            description = "Let the network look like this one, as MILLRACE_LINK says: rate=10Gbit,delay=5ms.")
    private @Nullable String link;

    @Option(
            names = "--net",
            paramLabel = "NAME",
            description = "What carries the data; short for -D MILLRACE_NET=NAME.")
    private @Nullable String net;

    @Option(
            names = "--ranks-per-host",
            paramLabel = "K",
            defaultValue = "1",
            converter = Converters.Few.class,
            description = "Let each K ranks be those of a host (default: 1).")
    private Integer ranksPerHost;

    @Option(
            names = "--speed",
            paramLabel = "FACTOR",
            defaultValue = "1",
            description = "Make the program's pauses shorter by this factor (default: 1).")
    private double speed;

    @Option(
            names = "--overlap",
            description = "The program goes on while its operations run, as training that overlaps the two does. Without"
                    + " it what was called after an operation's end waits for that end again.")
    private boolean overlap;

    @Option(
            names = "--communicator",
            paramLabel = "HASH",
            description = "Which one's operations (default: the one with the most).")
    private @Nullable String communicator;

    @Option(
            names = "--out",
            paramLabel = "DIR",
            description = "Keep the replay's own recording there, a new directory (default: it is deleted).")
    private @Nullable Path kept;

    @Option(
            names = "--deadline",
            paramLabel = "TIME",
            defaultValue = "10m",
            converter = Converters.Time.class,
            description = "End everything after that time, as a failure (default: ${DEFAULT-VALUE}).")
    private Duration deadline;

    @Option(names = "--worker-rank", hidden = true)
    private @Nullable Integer workerRank;

    @Option(names = "--worker-rendezvous", hidden = true)
    private String workerRendezvous;

    @Option(names = "--worker-recording", hidden = true)
    private Path workerRecording;

    @Override
    public Integer call() throws IOException {
        require(speed > 0, "--speed: a number above 0");
        RecordedRun run = RecordingReader.read(directory, false);
        ReplayPlan plan = ReplayPlan.of(run, hash(), overlap);
        Map<String, String> settings = settings(run);
        if (workerRank != null) {
            RankMain.run(workerRank, new Worker(plan, settings));
            return ExitCode.OK; // the parent process determines the exit status
        }
        // The settings are checked here, so that this process reports an error once. Without this check, every rank
        // would report the error.
        LinkNetwork.require(Configuration.load(settings),
                IntStream.range(0, plan.size())
                        .mapToObj(rank -> ProcessRanks.hostName(rank / ranksPerHost))
                        .distinct()
                        .toList());
        Path recording = kept == null ? Files.createTempDirectory("millrace-replay") : kept;
        try {
            List<RankRun.Failure> failures = RankRun.run(plan.size(),
                    (rendezvous, events) -> new ProcessRanks(plan.size(),
                            rank -> JavaCommand.ofRank(plan.size(), workerArguments(rank, rendezvous, recording)),
                            rank -> ProcessRanks.host(rank / ranksPerHost), events, spec.commandLine().getErr()),
                    RunDeadline.after(deadline), RankEvent.class, event -> {});
            if (!failures.isEmpty()) {
                RankRun.print(failures, spec.commandLine().getErr(), parent.stackTraces());
                return ExitCode.SOFTWARE;
            }
            print(run, plan, ReplayPlan.of(RecordingReader.read(recording, false), Optional.empty(), overlap));
            return ExitCode.OK;
        } finally {
            if (kept == null) {
                StartupCache.delete(recording);
            }
        }
    }

    private Optional<Long> hash() {
        try {
            return Optional.ofNullable(communicator).map(text -> Long.parseUnsignedLong(text, 16));
        } catch (NumberFormatException no) {
            throw new ParameterException(spec.commandLine(), "--communicator: '" + communicator
                    + "' is not a communicator's hash; 'millrace record export' shows the hashes", no);
        }
    }

    private Map<String, String> settings(RecordedRun run) {
        Map<String, String> settings = parent.settings();
        settings.put(Settings.DEVICE.name(), "host");
        if (link != null) {
            settings.put(Settings.LINK.name(), link);
        }
        if (net != null) {
            settings.put(Settings.NETWORK.name(), net);
        }
        if (workerRecording != null) {
            settings.put(Settings.RECORD.name(), workerRecording.toString());
            settings.put(Settings.RECORD_BYTES.name(), Long.toString(REPLAY_BYTES));
        }
        Configuration asked = Configuration.load(settings);
        if (!asked.isSet(Settings.MIN_CHANNELS) && !asked.isSet(Settings.MAX_CHANNELS)) {
            settings.put(Settings.MIN_CHANNELS.name(), Integer.toString(run.channels()));
            settings.put(Settings.MAX_CHANNELS.name(), Integer.toString(run.channels()));
        }
        return settings;
    }

    private List<String> workerArguments(int rank, String rendezvous, Path recording) {
        List<String> arguments = new ArrayList<>(spec.root().commandLine().getParseResult().originalArgs());
        arguments.addAll(List.of("--worker-rank", String.valueOf(rank), "--worker-rendezvous", rendezvous,
                "--worker-recording", recording.toString()));
        return arguments;
    }

    private void print(RecordedRun run, ReplayPlan plan, ReplayPlan replay) {
        PrintWriter out = spec.commandLine().getOut();
        List<Call> before = calls(plan, 0);
        List<Call> again = calls(replay, plan.warmUp().size());
        Map<RecordedRun.Kind, long[]> recorded = RecordedRun.times(before);
        Map<RecordedRun.Kind, Integer> counts = new TreeMap<>();
        before.forEach(call -> counts.merge(call.what(), 1, Integer::sum));
        Map<RecordedRun.Kind, long[]> replayed = RecordedRun.times(again);
        Columns table = new Columns("<OPERATION", "BYTES", "CALLS", "RECORDED US: MEDIAN", "SUM", "REPLAYED US: MEDIAN",
                "SUM", "FACTOR");
        counts.forEach((kind, count) -> {
            long[] was = recorded.getOrDefault(kind, new long[0]);
            long[] is = replayed.getOrDefault(kind, new long[0]);
            table.add(kind.name(), Long.toString(kind.bytes()), Integer.toString(count), median(was), sum(was),
                    median(is), sum(is),
                    was.length == 0 || is.length == 0 ? ""
                            : String.format(Locale.ROOT, "%.2f",
                                    (double) RecordedRun.median(is) / RecordedRun.median(was)));
        });
        table.print(out);
        out.printf(Locale.ROOT, "all: %s recorded, %s replayed, of %d ranks%n", millis(span(plan, 0)),
                millis(span(replay, plan.warmUp().size())), plan.size());
        if (plan.others() > 0) {
            out.println("Of " + Units.count(plan.others(), "other communicator", "other communicators")
                    + " nothing was done: --communicator chooses.");
        }
        RecordCommand.tellWhatIsMissing(run, out);
        out.flush();
    }

    private static List<Call> calls(ReplayPlan plan, int without) {
        List<Call> all = new ArrayList<>();
        for (int rank = 0; rank < plan.size(); rank++) {
            all.addAll(plan.calls(rank).subList(without, plan.calls(rank).size()));
        }
        return all;
    }

    /**
     * Returns the longest time that a rank took from its first call to the end of its last operation, in nanoseconds; 0
     * if the times at which operations ended are unknown.
     */
    private static long span(ReplayPlan plan, int without) {
        long longest = 0;
        for (int rank = 0; rank < plan.size(); rank++) {
            List<Call> own = plan.calls(rank).subList(without, plan.calls(rank).size());
            long end = own.stream().mapToLong(Call::ended).max().orElse(0);
            long begin = own.stream().map(Call::enqueued).min(Comparator.naturalOrder()).orElse(0L);
            longest = Math.max(longest, end == 0 ? 0 : end - begin);
        }
        return longest;
    }

    private static String median(long[] times) {
        return times.length == 0 ? "" : Units.micros(RecordedRun.median(times));
    }

    private static String sum(long[] times) {
        return times.length == 0 ? "" : String.format(Locale.ROOT, "%.0f", Arrays.stream(times).sum() / 1e3);
    }

    private static String millis(long nanos) {
        return nanos == 0 ? "not" : String.format(Locale.ROOT, "%.3f ms", nanos / 1e6);
    }

    private final class Worker extends CommunicatorWorker {

        private final ReplayPlan plan;

        Worker(ReplayPlan plan, Map<String, String> settings) {
            super(workerRendezvous, workerRank, plan.size(), settings);
            this.plan = plan;
        }

        @Override
        protected void work(Communicator made, DeviceStream stream, Arena arena, Reporter reporter) {
            Replay replay = new Replay(made, stream, arena, plan.calls(workerRank), speed, deadline);
            replay.warmUp(plan.warmUp());
            replay.run(plan.launches(workerRank));
        }
    }
}
