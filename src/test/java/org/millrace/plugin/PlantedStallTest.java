package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Locale;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.millrace.trace.Hang;
import org.millrace.trace.TimedVerdicts;
import org.millrace.trace.TraceReader;
import org.millrace.trace.TracedCommunicator;
import org.millrace.trace.TracedProcess;
import org.millrace.trace.Verdict.Cause;
import org.millrace.trace.Verdict;

/**
 * Processes that stall for a planted reason. The verdict names this reason and the faulty rank.
 * {@code -Dmillrace.stalls=200} draws random stalls instead, and {@code -Dmillrace.stalls.seed=N} repeats a seed's
 * stalls.
 */
@Tag("slow")
class PlantedStallTest {

    private static final Duration QUIET = Duration.ofSeconds(1);
    /** Pause between two checks, in milliseconds. The ranks use the cores meanwhile. */
    private static final long LOOK_MILLIS = 20;
    private static final long DEADLINE_NANOS = TimeUnit.MINUTES.toNanos(5);
    /** Number of polls for which a frame is delayed. The delay lasts longer than the test. */
    private static final long BLACK_HOLE = 1_000_000_000_000L;

    /** The planted fault, as the host program names it, and the expected verdict. */
    private enum Way {
        LAUNCH(Cause.NOT_LAUNCHED),
        STOP(Cause.STOPPED),
        KILL(Cause.GONE),
        CONSUME(Cause.NOT_CONSUMED),
        DISAGREE(Cause.DISAGREEMENT),
        WIRE(Cause.WIRE),
        CUT(Cause.CUT);

        private final Cause cause;

        Way(Cause cause) {
            this.cause = cause;
        }

        private String word() {
            return this == CUT ? "wire" : name().toLowerCase(Locale.ROOT);
        }
    }

    private record Stall(long seed, Way way, int ranks, int channels, int victim, int operation, int channel,
            String pattern, String network) {

        static Stall draw(long seed) {
            SplittableRandom random = new SplittableRandom(seed);
            int ranks = 2 + random.nextInt(7);
            int channels = 1 + random.nextInt(2);
            return new Stall(seed, Way.values()[random.nextInt(Way.values().length)], ranks, channels,
                    random.nextInt(ranks), 2 + random.nextInt(20), random.nextInt(channels),
                    random.nextBoolean() ? "ring" : "stream", random.nextInt(3) == 0 ? "socket" : "shm");
        }

        boolean isRight(Verdict verdict) {
            return verdict.cause() == way.cause && (verdict.rank() == victim || way == Way.DISAGREE && ranks == 2)
                    && (way != Way.LAUNCH
                            || verdict.operation() != null && verdict.operation().sequence() == operation - 1)
                    && (way != Way.WIRE && way != Way.CUT || verdict.peerRank() == (victim + 1) % ranks);
        }
    }

    static Stream<Stall> stalls() {
        long seed = Long.getLong("millrace.stalls.seed", System.nanoTime());
        int drawn = Integer.getInteger("millrace.stalls", 0);
        return drawn > 0 ? LongStream.range(seed, seed + drawn).mapToObj(Stall::draw)
                : Stream.of(new Stall(0, Way.LAUNCH, 2, 1, 1, 5, 0, "ring", "shm"),
                        new Stall(0, Way.STOP, 2, 2, 0, 3, 0, "stream", "socket"),
                        new Stall(0, Way.KILL, 2, 1, 1, 7, 0, "ring", "shm"),
                        new Stall(0, Way.CONSUME, 2, 2, 1, 4, 0, "stream", "shm"),
                        new Stall(0, Way.DISAGREE, 3, 1, 2, 6, 0, "ring", "shm"),
                        new Stall(0, Way.WIRE, 2, 2, 0, 5, 1, "stream", "socket"),
                        new Stall(0, Way.CUT, 2, 1, 1, 8, 0, "ring", "shm"));
    }

    /** Returns the setting that plants a fault in the victim's network; null if the stall has another cause. */
    private static String fault(Stall stall) {
        int frame = 3 * (stall.operation - 1) + 1;
        String connection = ",connection=" + (stall.channel + 1);
        return switch (stall.way) {
            case WIRE -> "delay:frame=" + frame + ",polls=" + BLACK_HOLE + connection;
            case CUT -> "cut:frame=" + frame + connection;
            default -> null;
        };
    }

    private static Process start(Path directory, Stall stall, String fault) throws Exception {
        HostProgram host = HostProgram.compile("stall_host", "-DNET_VERSION=11")
                .withNetwork(stall.network)
                .with("MILLRACE_TRACE_DIRECTORY", directory.toString())
                .with("MILLRACE_ON_LOSS", "report")
                .with("MILLRACE_THREADS", "1")
                .with("MILLRACE_STALL_REPORT", "1s");
        if (fault != null) {
            host.with("MILLRACE_FAULT", fault);
        }
        return host.start(directory.resolve("output"), HostProgram.library(), stall.way.word(), stall.ranks,
                stall.channels, stall.victim, stall.operation, stall.pattern);
    }

    private static void await(Path output, String line, Process process) throws Exception {
        long deadline = System.nanoTime() + DEADLINE_NANOS;
        while (!Files.readString(output).contains(line)) {
            boolean ended = process.waitFor(LOOK_MILLIS, TimeUnit.MILLISECONDS);
            assertTrue(!ended && System.nanoTime() < deadline, () -> "no " + line + ":\n" + text(output));
        }
    }

    private static String text(Path file) {
        try {
            return Files.readString(file);
        } catch (java.io.IOException e) {
            return e.toString();
        }
    }

    private static TimedVerdicts asking(Path directory) {
        return new TimedVerdicts(() -> TraceReader.readAll(directory, (file, problem) -> {
            throw new AssertionError(file.toString(), problem);
        }), QUIET);
    }

    private static void end(Process process) throws Exception {
        process.getOutputStream().close();
        if (!process.waitFor(10, TimeUnit.SECONDS)) {
            process.destroyForcibly().waitFor();
        }
    }

    @ParameterizedTest
    @MethodSource("stalls")
    void theVerdictNamesTheRankAndTheCause(Stall stall, @TempDir Path directory) throws Exception {
        assertRightVerdict(stall, fault(stall), directory);
    }

    /** The victim's first frame never arrives, so that its peer completes nothing. */
    @Test
    void theVerdictNamesARankThatStopsBeforeTheFirstOperationIsComplete(@TempDir Path directory) throws Exception {
        Stall stall = new Stall(0, Way.STOP, 2, 2, 0, 3, 0, "stream", "socket");
        assertRightVerdict(stall, "delay:frame=1,polls=" + BLACK_HOLE + ",connection=1", directory);
    }

    private static void assertRightVerdict(Stall stall, String fault, Path directory) throws Exception {
        Process process = start(directory, stall, fault);
        try {
            await(directory.resolve("output"), "STILL", process);
            TimedVerdicts asking = asking(directory);
            List<Verdict> verdicts = asking.ask();
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
            while (verdicts.isEmpty() && System.nanoTime() < deadline) {
                process.waitFor(LOOK_MILLIS, TimeUnit.MILLISECONDS);
                verdicts = asking.ask();
            }
            List<String> sentences = verdicts.stream().map(Verdict::sentence).toList();
            String what = stall + "\n" + sentences + "\n" + asking + "\n";
            System.out.println(what.strip());
            assertEquals(1, verdicts.size(), () -> what + text(directory.resolve("output")));
            assertTrue(stall.isRight(verdicts.getFirst()), () -> what + text(directory.resolve("output")));
            for (int rank = 0; rank < stall.ranks; rank++) {
                if (rank != stall.victim || stall.way != Way.STOP && stall.way != Way.KILL) {
                    String said = "millrace: rank " + rank + ", pid ";
                    await(directory.resolve("output"), said, process);
                }
            }
        } finally {
            end(process);
        }
    }

    @Test
    void aHealthyJobHasNoVerdict(@TempDir Path directory) throws Exception {
        Stall stall = new Stall(0, Way.LAUNCH, 3, 2, 9, 0, 0, "ring", "shm");
        HostProgram host = HostProgram.compile("stall_host", "-DNET_VERSION=11")
                .withNetwork(stall.network)
                .with("MILLRACE_TRACE_DIRECTORY", directory.toString())
                .with("MILLRACE_STALL_REPORT", "2s");
        Process process =
                host.start(directory.resolve("output"), HostProgram.library(), "healthy", 3, 2, 0, 0, stall.pattern);
        List<Verdict> wrong = new ArrayList<>();
        try {
            while (!Files.readString(directory.resolve("output")).contains("STILL")) {
                wrong.addAll(Hang.verdicts(() -> TraceReader.readAll(directory, (file, problem) -> {}),
                        QUIET.multipliedBy(2)));
                process.waitFor(LOOK_MILLIS, TimeUnit.MILLISECONDS);
            }
            wrong.addAll(asking(directory).ask());
            for (TracedProcess each : TraceReader.readAll(directory, (file, problem) -> {})) {
                TracedCommunicator group = each.communicators().getFirst();
                assertTrue(group.enqueued() > 0, "no operations");
                assertEquals(Map.of("Broadcast", 0L, "Reduce", 0L, "AllGather", 0L, "ReduceScatter", 0L, "AllReduce",
                        group.enqueued()), group.functions(), "operations of NCCL by function");
            }
            assertEquals(List.of(), wrong.stream().map(Verdict::sentence).toList(),
                    () -> text(directory.resolve("output")));
            try (Stream<String> lines = Files.lines(directory.resolve("output"))) {
                assertEquals(List.of(), lines.filter(line -> line.startsWith("millrace: ")).toList());
            }
        } finally {
            end(process);
        }
    }
}
