package org.millrace.cli.rehearsal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.MillraceException;
import org.millrace.cli.Run;
import org.millrace.cli.base.Json;
import org.millrace.plugin.HostProgram;
import org.millrace.rehearsal.RecordedRun;
import org.millrace.rehearsal.RecordingReader;

/** Recorded runs, and the command line's output about them. */
@Tag("slow")
class RecordCommandTest {

    private static final int ITERATIONS = 40;
    private static final int COUNT = 512;

    @TempDir
    private Path directory;

    private String at() {
        return directory.resolve("recording").toString();
    }

    private void record(String collective, String bytes) {
        Run perf = Run.of("perf", collective, "-r", "2", "--processes", "--ranks-per-host", "1", "--net", "socket",
                "--channels", "2", "-b", bytes, "-e", bytes, "-n", Integer.toString(ITERATIONS), "-w", "0", "-D",
                "MILLRACE_RECORD=" + at());
        assertEquals(0, perf.status(), perf::toString);
    }

    @Test
    void everyOperationAndEveryStepIsThere() throws Exception {
        record("all_reduce", "2K");
        RecordedRun run = RecordingReader.read(directory.resolve("recording"));
        assertEquals(2, run.processes().size());
        assertEquals(0, run.lost());
        Map<Long, Map<Integer, List<RecordedRun.Call>>> byRank = run.byRank();
        assertEquals(1, byRank.size());
        List<List<RecordedRun.Call>> ranks = List.copyOf(byRank.values().iterator().next().values());
        assertEquals(2, ranks.size());
        for (List<RecordedRun.Call> calls : ranks) {
            assertEquals(2 * (ITERATIONS + 1), calls.size(),
                    "out of place and in place, each with one that is checked");
            assertEquals(ranks.getFirst().size(), calls.size());
            for (int i = 0; i < calls.size(); i++) {
                assertEquals(i, calls.get(i).number());
                assertEquals(new RecordedRun.Kind("all_reduce", 4L * COUNT), calls.get(i).what());
                assertTrue(calls.get(i).nanos() > 0 && calls.get(i).started() >= calls.get(i).enqueued(),
                        calls.get(i)::toString);
            }
        }
        long sent =
                run.steps().stream().filter(step -> step.connection().sends()).mapToLong(RecordedRun.Step::size).sum();
        long received =
                run.steps().stream().filter(step -> !step.connection().sends()).mapToLong(RecordedRun.Step::size).sum();
        assertEquals(sent, received, "what one end sends the other one gets");
        assertTrue(sent >= 2L * ranks.getFirst().size() * 4 * COUNT, "a ring of two sends all of it from each rank");
        Run stat = Run.of("record", "stat", at());
        assertTrue(stat.out().contains("all_reduce  2048"), stat::toString);
        assertTrue(stat.out().contains("rank 1 -> rank 0, channel 0, socket"), stat::toString);
        Run show = Run.of("record", "show", at());
        assertTrue(show.out().contains("0 of 2") && show.out().contains("1 of 2"), show::toString);
        exports(run);
        simulates();
    }

    private void simulates() throws Exception {
        Path page = directory.resolve("page.html");
        Run simulate = Run.of("simulate", at(), "--ranks", "2,16", "--ranks-per-host", "2", "--link",
                "rate=1Gbit,delay=10ms", "--html", page.toString());
        assertEquals(0, simulate.status(), simulate::toString);
        assertEquals(3, simulate.out().lines().filter(line -> line.startsWith("all_reduce ")).count(),
                () -> "two, and sixteen by two algorithms: " + simulate);
        assertTrue(simulate.out().contains("on 16 ranks: "), simulate::toString);
        assertEquals(3, Files.readString(page).lines().filter(line -> line.contains("<small>")).count());
        Run refused = Run.of("simulate", at(), "--ranks", "3", "--ranks-per-host", "2");
        assertTrue(refused.status() != 0 && refused.err().contains("--ranks-per-host"), refused::toString);
        Run pairs = Run.of("simulate", at(), "--ranks", "2", "--link", "host0-host1: delay=1ms");
        assertTrue(pairs.status() != 0 && pairs.err().contains("one link for all"), pairs::toString);
    }

    @Test
    void aRecordingWithoutStepsIsNotSimulated() {
        Run perf = Run.of("perf", "all_reduce", "-r", "2", "--processes", "-b", "2K", "-e", "2K", "-n", "2", "-w", "0",
                "-D", "MILLRACE_RECORD=" + at());
        assertEquals(0, perf.status(), perf::toString);
        assertEquals(List.of(), RecordingReader.read(directory.resolve("recording")).steps());
        Run simulate = Run.of("simulate", at(), "--ranks", "2");
        assertTrue(simulate.status() != 0 && simulate.out().isEmpty(), simulate::toString);
        assertTrue(simulate.err().contains(at() + " has no steps, and a simulation needs their costs"),
                simulate::toString);
    }

    private void exports(RecordedRun run) throws Exception {
        Run csv = Run.of("record", "export", at());
        assertEquals(1L + run.steps().size() + run.calls().size(), csv.out().lines().count());
        int columns = csv.out().lines().findFirst().orElseThrow().split(",", -1).length;
        assertTrue(csv.out().lines().allMatch(line -> line.split(",", -1).length == columns), csv::toString);
        Path file = directory.resolve("trace.json");
        Run chrome = Run.of("record", "export", "--format", "chrome", "--out", file.toString(), at());
        assertEquals(0, chrome.status(), chrome::toString);
        Map<?, ?> document = (Map<?, ?>) Json.read(Files.readString(file));
        long spans = ((List<?>) document.get("traceEvents")).stream()
                .filter(event -> "X".equals(((Map<?, ?>) event).get("ph")))
                .count();
        assertEquals(run.steps().size() + run.calls().size(), spans);
    }

    private static String said(RecordedRun.Call call) {
        return call.kind() + " " + call.count() + " " + call.type() + " " + call.peer() + " " + call.root();
    }

    @ParameterizedTest
    @ValueSource(strings = {"alltoall", "broadcast"})
    void aReplayDoesTheSameOperations(String collective) {
        record(collective, "1M");
        Path kept = directory.resolve("replay");
        Run replay = Run.of("replay", at(), "--net", "socket", "--link", "rate=10Gbit,delay=100us", "--speed", "100",
                "--out", kept.toString());
        assertEquals(0, replay.status(), replay::toString);
        assertTrue(replay.out().contains("recorded, ") && replay.out().contains(" of 2 ranks"), replay::toString);
        ReplayPlan before =
                ReplayPlan.of(RecordingReader.read(directory.resolve("recording")), Optional.empty(), false);
        ReplayPlan again = ReplayPlan.of(RecordingReader.read(kept), Optional.empty(), false);
        for (int rank = 0; rank < 2; rank++) {
            List<RecordedRun.Call> all = again.calls(rank);
            assertTrue(before.calls(rank).size() >= ITERATIONS);
            assertEquals(before.calls(rank).stream().map(RecordCommandTest::said).toList(),
                    all.subList(before.warmUp().size(), all.size()).stream().map(RecordCommandTest::said).toList());
        }
        assertEquals(collective.equals("broadcast") ? 2 : 1, RecordingReader.read(kept).channels());
        assertEquals("rate=10Gbit,delay=100us", RecordingReader.read(kept).processes().getFirst().link().orElseThrow());
    }

    /**
     * Starts two processes in which Millrace takes over from libnccl's proxy. Kills them after both have recorded
     * steps.
     */
    @Test
    void whatAKilledProcessDidCanBeRead() throws Exception {
        Path recording = directory.resolve("recording");
        Process host = HostProgram.compile("takeover_host", "-DNET_VERSION=11")
                .withNetwork("socket")
                .with("MILLRACE_TRACE_DIRECTORY", directory.toString())
                .with("MILLRACE_RECORD", recording.toString())
                .start(directory.resolve("output"), HostProgram.library(), "processes", 2, 1_000_000_000L, 15, "small");
        List<ProcessHandle> children;
        try {
            long begun = System.nanoTime();
            while (!Files.isDirectory(recording) || !bothHaveMoved(recording)) {
                assertTrue(host.isAlive() && System.nanoTime() - begun < TimeUnit.SECONDS.toNanos(90),
                        () -> "nothing was recorded");
                Thread.yield();
            }
        } finally {
            children = host.descendants().toList();
            host.destroyForcibly().waitFor();
            for (ProcessHandle child : children) {
                child.destroyForcibly();
                child.onExit().get(30, TimeUnit.SECONDS);
            }
        }
        RecordedRun run = RecordingReader.read(recording);
        assertEquals(2, run.processes().size());
        for (RecordedRun.Step step : run.steps()) {
            assertTrue(step.done() >= step.taken() && step.idle() >= 0 && step.blocked() >= 0, step::toString);
        }
        Run stat = Run.of("record", "stat", recording.toString());
        assertEquals(0, stat.status(), stat::toString);
        assertTrue(stat.out().contains(" -> ") && stat.out().contains(" <- "), stat::toString);
    }

    /** A profiler of NCCL reports operations, and native code records them. */
    @Test
    void operationsUnderLibncclAreThere() throws Exception {
        Path recording = directory.resolve("recording");
        HostProgram.Outcome outcome = HostProgram.compile("profiler_host", "-DNET_VERSION=11", "-DPROFILER_VERSION=6")
                .with("MILLRACE_RECORD", recording.toString())
                .run(HostProgram.library(), 80, 0x5eed);
        assertEquals(0, outcome.exit(), outcome::output);
        RecordedRun run = RecordingReader.read(recording);
        assertTrue(run.calls().stream().anyMatch(RecordedRun.Call::isTransfer), run::toString);
        assertTrue(run.calls().stream().anyMatch(call -> !call.isTransfer() && call.bytes() > 0), run::toString);
        assertTrue(run.calls().stream().anyMatch(call -> call.nanos() > 0), "kernels' times: " + run);
    }

    private static boolean bothHaveMoved(Path recording) {
        try {
            RecordedRun run = RecordingReader.read(recording);
            return run.steps().stream().map(step -> step.connection().process()).distinct().count() == 2
                    && run.steps().size() > 4000;
        } catch (MillraceException notYet) {
            return false;
        }
    }
}
