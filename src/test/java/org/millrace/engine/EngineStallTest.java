package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.millrace.cli.Run;
import org.millrace.cli.inspect.RasStatus;
import org.millrace.engine.StallRank.Pattern;
import org.millrace.engine.StallRank.Way;
import org.millrace.trace.TraceLayout.CommunicatorFields;
import org.millrace.trace.TimedVerdicts;
import org.millrace.trace.TraceReader;
import org.millrace.trace.TracedProcess;
import org.millrace.trace.Verdict;

/**
 * Ranks of the engine that stall for a planted reason. The first verdict names the reason and the rank that caused it.
 * If a connection's trace shows the stall, the verdict also names the peer, the channel and the direction.
 * {@code -Dmillrace.stalls=200} makes the test draw random stalls instead. {@code -Dmillrace.stalls.seed=N} repeats the
 * stalls of a seed.
 */
@Tag("slow")
@Timeout(900)
class EngineStallTest {

    private static final Duration QUIET = Duration.ofSeconds(1);
    /** Pause between two checks, in milliseconds. The ranks use the cores during the pause. */
    private static final long LOOK_MILLIS = 20;
    private static final long DEADLINE_NANOS = TimeUnit.MINUTES.toNanos(5);
    /** Delay that lasts longer than the test, as a number of polls. */
    private static final long BLACK_HOLE = 1_000_000_000_000L;
    /** Causes of verdicts about ranks that start slowly on a busy machine. No planted stall has these causes. */
    private static final Set<Verdict.Cause> SLOW_START =
            EnumSet.of(Verdict.Cause.NOT_JOINED, Verdict.Cause.NOT_CONNECTED);

    @TempDir
    Path directory;
    private final List<Process> children = new ArrayList<>();

    /** Transport and network of the ranks' data. */
    private enum Network {
        /** The engine's default on one host: devices access each other's memory. */
        DIRECT,
        /** A proxy copies data between two devices' memory. */
        COPY("NCCL_SHM_USE_CUDA_MEMCPY=1", "NCCL_P2P_USE_CUDA_MEMCPY=1"),
        SHM("MILLRACE_NET=shm"),
        SOCKET("MILLRACE_NET=socket");

        private final List<String> settings;

        Network(String... settings) {
            this.settings = List.of(settings);
        }

        private boolean hasFrames() {
            return this == SHM || this == SOCKET;
        }
    }

    /**
     * A stall.
     *
     * @param seed     seed of a drawn stall; 0 for any other stall
     * @param together number of ranks in a process
     */
    private record Stall(long seed, Way way, Network network, Pattern pattern, int ranks, int together, int channels,
            int victim, int operation, int ahead, long count) {

        static Stall of(Way way, Network network, Pattern pattern, int ranks, int together, int channels, int victim,
                int operation, int ahead, long count) {
            return new Stall(0, way, network, pattern, ranks, together, channels, victim, operation, ahead, count);
        }

        static Stall draw(long seed) {
            SplittableRandom random = new SplittableRandom(seed);
            Way way = Way.values()[random.nextInt(Way.values().length)];
            int ranks = 2 + random.nextInt(7);
            Network network = Network.values()[way.isOfTheWire() ? 2 + random.nextInt(2) : random.nextInt(4)];
            // a rank sends to one neighbor only, so the affected connection is known
            Pattern pattern = way.isOfTheWire() && random.nextBoolean() ? Pattern.NEIGHBOURS
                    : way.isOfTheWire() ? Pattern.values()[random.nextInt(3)] // in this pattern every rank sends
                            : Pattern.values()[random.nextInt(Pattern.values().length)];
            boolean alone = way == Way.STOP || way == Way.KILL;
            return new Stall(seed, way, network, pattern, ranks, alone || random.nextBoolean() ? 1 : 2,
                    1 + random.nextInt(2), random.nextInt(ranks), 2 + random.nextInt(20), random.nextInt(3),
                    1 + random.nextInt(random.nextBoolean() ? 100 : 60_000));
        }

        List<String> settings(Path directory) {
            List<String> settings = new ArrayList<>(network.settings);
            settings.addAll(List.of("MILLRACE_TRACE_DIRECTORY=" + directory, "MILLRACE_STALL_REPORT=1s",
                    "MILLRACE_STALL_DEADLINE=300s", "MILLRACE_CONNECT_DEADLINE=300s", "MILLRACE_THREADS=1",
                    "NCCL_BUFFSIZE=64K", "NCCL_MAX_NCHANNELS=" + channels, "NCCL_MIN_NCHANNELS=" + channels));
            if (way.isOfTheWire()) {
                settings.add("victim:MILLRACE_FAULT="
                        + (way == Way.CUT ? "cut:frame=7" : "delay:frame=7,polls=" + BLACK_HOLE));
            }
            return settings;
        }

        /**
         * Returns whether a verdict may name another rank, with the victim as its peer. After a disagreement this is
         * right in three cases: there are two ranks, the ranks send to neighbors, or the traces no longer contain the
         * all-to-all.
         */
        private boolean isBetweenTwo() {
            boolean remembered = (ahead + 1) * 2 * ranks <= CommunicatorFields.OPERATIONS;
            return way == Way.DISAGREE
                    && (ranks == 2 || pattern == Pattern.NEIGHBOURS || pattern == Pattern.ALL_TO_ALL && !remembered);
        }

        boolean isRight(Verdict verdict) {
            Map<String, Object> json = verdict.json();
            boolean right = verdict.cause() == way.cause
                    && (verdict.rank() == victim || isBetweenTwo() && verdict.peerRank() == victim);
            if (way.isOfTheWire()) {
                right &= (pattern != Pattern.NEIGHBOURS || verdict.peerRank() == (victim + 1) % ranks)
                        && verdict.peerRank() >= 0 && "send".equals(json.get("direction"))
                        && json.get("channel") instanceof Long channel && channel < channels;
            }
            if (way == Way.CONSUME || way == Way.BEGIN || way == Way.LAUNCH) {
                right &= verdict.peerRank() >= 0 && json.get("channel") != null && json.get("direction") != null;
            }
            if (way == Way.LAUNCH) {
                right &= verdict.operation() != null && (verdict.operation().peer() >= 0
                        || verdict.sentence().contains("the last that it has launched is #" + (operation - 1) + ";"));
            }
            return right;
        }
    }

    static Stream<Stall> stalls() {
        long seed = Long.getLong("millrace.stalls.seed", System.nanoTime());
        int drawn = Integer.getInteger("millrace.stalls", 0);
        return drawn > 0 ? LongStream.range(seed, seed + drawn).mapToObj(Stall::draw)
                : Stream.of(Stall.of(Way.LAUNCH, Network.DIRECT, Pattern.ALL_REDUCE, 3, 2, 1, 2, 5, 1, 1000),
                        Stall.of(Way.STOP, Network.SOCKET, Pattern.BROADCAST, 2, 1, 2, 1, 4, 0, 100),
                        Stall.of(Way.KILL, Network.SHM, Pattern.ALL_GATHER, 2, 1, 1, 0, 6, 1, 100),
                        Stall.of(Way.BEGIN, Network.COPY, Pattern.REDUCE_SCATTER, 2, 2, 2, 1, 3, 2, 60_000),
                        Stall.of(Way.CONSUME, Network.SHM, Pattern.ALL_TO_ALL, 2, 2, 1, 0, 7, 0, 5000),
                        Stall.of(Way.DISAGREE, Network.DIRECT, Pattern.ALL_REDUCE, 3, 2, 1, 1, 4, 1, 100),
                        Stall.of(Way.BLACK_HOLE, Network.SOCKET, Pattern.NEIGHBOURS, 2, 2, 1, 1, 9, 0, 1000),
                        Stall.of(Way.CUT, Network.SHM, Pattern.ALL_REDUCE, 2, 2, 2, 0, 9, 0, 30_000));
    }

    @AfterEach
    void endChildren() throws InterruptedException {
        for (Process child : children) {
            child.destroyForcibly().waitFor(30, TimeUnit.SECONDS);
        }
    }

    private Path output(int process) {
        return directory.resolve("output-" + process);
    }

    private void start(Stall stall) throws IOException {
        for (int first = 0; first < stall.ranks; first += stall.together) {
            List<String> ranks = new ArrayList<>();
            for (int rank = first; rank < Math.min(stall.ranks, first + stall.together); rank++) {
                ranks.add(Integer.toString(rank));
            }
            List<String> command =
                    new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                            "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m",
                            "--enable-native-access=ALL-UNNAMED", "-cp", System.getProperty("java.class.path"),
                            StallRank.class.getName(), directory.toString(), String.join(",", ranks), "" + stall.ranks,
                            stall.way.name(), "" + stall.victim, "" + stall.operation, stall.pattern.name(),
                            "" + stall.ahead, "" + stall.count));
            command.addAll(stall.settings(directory));
            children.add(new ProcessBuilder(command).redirectErrorStream(true)
                    .redirectOutput(output(children.size()).toFile())
                    .start());
        }
    }

    private List<TracedProcess> traces() throws IOException {
        return TraceReader.readAll(directory, (file, problem) -> {});
    }

    private String outputs() {
        StringBuilder text = new StringBuilder();
        for (int process = 0; process < children.size(); process++) {
            try {
                text.append(Files.readString(output(process)));
            } catch (IOException e) {
                text.append(e);
            }
        }
        return text.toString();
    }

    /** Checks that each running process logs the verdict on its own, without a request. */
    private void assertAllSay(Stall stall, String what) throws Exception {
        long deadline = System.nanoTime() + DEADLINE_NANOS;
        for (int process = 0; process < children.size(); process++) {
            boolean silent = (stall.way == Way.STOP || stall.way == Way.KILL) && process == stall.victim;
            long pid = children.get(process).pid();
            while (!silent && traces().stream()
                    .filter(each -> each.identity().pid() == pid)
                    .noneMatch(each -> each.messages().stream().anyMatch(one -> one.text().contains(what)))) {
                assertTrue(System.nanoTime() < deadline, () -> "pid " + pid + " does not say " + what);
                children.get(process).waitFor(LOOK_MILLIS, TimeUnit.MILLISECONDS);
            }
        }
    }

    /**
     * Runs {@code millrace why} until its result names the stall. At first the command may find no stall, because the
     * processes may still wait for a core.
     */
    private Run why() {
        long deadline = System.nanoTime() + DEADLINE_NANOS;
        while (true) {
            Run run = Run.of("why", "--json", "--directory", directory.toString());
            if (run.status() != 0 || System.nanoTime() > deadline) {
                return run;
            }
        }
    }

    /**
     * Checks how other programs learn of the stall. A parser of RAS's output can read the output of {@code why --json}.
     * With {@code --watch}, {@code why} runs the command of the option {@code --exec}.
     */
    private void assertProgramsAreTold(Stall stall, Verdict verdict) throws Exception {
        Run run = why();
        assertEquals(3, run.status(), run::toString);
        RasStatus.Communicator communicator = RasStatus.parse(run.out()).communicators().getFirst();
        assertEquals(stall.ranks, communicator.size(), run::toString);
        assertEquals(stall.way == Way.STOP || stall.way == Way.KILL ? List.of((long) stall.victim) : List.of(),
                communicator.missing().stream().map(RasStatus.Missing::rank).toList(), run::toString);
        assertTrue(run.out().contains("\"verdict\": \"" + verdict.cause().label() + '"'), run::toString);
        Path told = directory.resolve("told");
        String pid = Long.toString(children.getFirst().pid());
        // The command kills the watched process, so the watch ends, too.
        Run watch = Run.of("why", "--directory", directory.toString(), "--watch", "0s", "--exec",
                "cat >> " + told + "; kill -9 " + pid + " 2> /dev/null || true", pid);
        assertEquals(3, watch.status(), watch::toString);
        assertTrue(Files.readString(told).contains("\"verdict\": \"" + verdict.cause().label() + '"'), watch::toString);
    }

    @ParameterizedTest
    @MethodSource("stalls")
    void theFirstVerdictNamesTheRankAndTheCause(Stall stall) throws Exception {
        start(stall);
        List<Verdict> verdicts = List.of();
        long deadline = System.nanoTime() + DEADLINE_NANOS;
        TimedVerdicts asking = new TimedVerdicts(this::traces, QUIET);
        while (verdicts.isEmpty()) {
            assertTrue(System.nanoTime() < deadline, () -> stall + "\nno verdict:\n" + outputs());
            children.getLast().waitFor(LOOK_MILLIS, TimeUnit.MILLISECONDS);
            verdicts = asking.ask().stream().filter(each -> !SLOW_START.contains(each.cause())).toList();
        }
        String what = stall + "\n" + verdicts.stream().map(Verdict::sentence).toList() + "\n" + asking + "\n";
        System.out.println(what.strip());
        assertEquals(1, verdicts.size(), () -> what + outputs());
        assertTrue(stall.isRight(verdicts.getFirst()), () -> what + outputs());
        if (!verdicts.getFirst().still().isZero() && stall.way != Way.KILL && stall.way != Way.CUT
                && stall.way != Way.DISAGREE) {
            assertAllSay(stall, "ank " + verdicts.getFirst().rank());
        }
        assertProgramsAreTold(stall, verdicts.getFirst()); // this check kills the first process
    }
}
