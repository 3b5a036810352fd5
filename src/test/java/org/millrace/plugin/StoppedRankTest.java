package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.trace.Hang;
import org.millrace.trace.TraceReader;
import org.millrace.trace.TracedProcess;
import org.millrace.trace.Verdict.Cause;
import org.millrace.trace.Verdict;

/** A rank that a signal stops is reported as stopped, not as lost. The rank's job continues after SIGCONT. */
@Tag("slow")
@Timeout(value = 300, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class StoppedRankTest {

    private static final int RANKS = 3;
    private static final int VICTIM = 1;
    private static final long LOOK_MILLIS = 20;

    @TempDir
    private Path directory;
    private Process ranks;

    /** Gives the ranks the cores for a moment. Then returns the output so far. */
    private String output() throws Exception {
        assertFalse(ranks.waitFor(LOOK_MILLIS, TimeUnit.MILLISECONDS));
        return Files.readString(directory.resolve("output"));
    }

    private List<TracedProcess> read() throws IOException {
        return TraceReader.readAll(directory, (file, problem) -> {});
    }

    private String awaitLine(String pattern) throws Exception {
        Matcher found = Pattern.compile(pattern).matcher(output());
        while (!found.find()) {
            found = Pattern.compile(pattern).matcher(output());
        }
        return found.group(1);
    }

    /**
     * The other ranks report the stopped rank. Over TCP, the rank stays stopped for longer than the keep-alive (14 s)
     * and the limit for a silent link (10 s).
     */
    @ParameterizedTest
    @CsvSource({"shm, 5, 0;2, 2s, 1", "socket, 5, 0;2, 10s, 15", "ucx, 5, 0;2, 2s, 1", "shm, 0, 2, 10s, 2",
            "socket, 0, 2, 10s, 2"})
    void aStoppedRankIsReportedAndTheJobContinues(String network, int operation, String reporters, String report,
            int seconds) throws Exception {
        ranks = HostProgram.compile("stall_host", "-DNET_VERSION=11")
                .withNetwork(network)
                .with("MILLRACE_TRACE_DIRECTORY", directory.toString())
                .with("MILLRACE_STALL_REPORT", report)
                .start(directory.resolve("output"), HostProgram.library(), "stop", RANKS, 1, VICTIM, operation, "ring");
        try {
            String pid = awaitLine("rank " + VICTIM + " is pid (\\d+)\n");
            String words = "Rank " + VICTIM + " \\(pid " + pid + " on [^ ]+\\) is stopped \\(SIGCONT continues it\\)";
            for (String rank : reporters.split(";")) {
                awaitLine("millrace: rank " + rank + ", pid \\d+ on [^ ]+: nothing moves\\. (" + words + ")");
            }
            // Before the rank stops, a slow start may cause a verdict of another stall.
            while (!Files.readString(Path.of("/proc", pid, "stat")).contains(") T ")) {
                assertFalse(ranks.waitFor(LOOK_MILLIS, TimeUnit.MILLISECONDS));
            }
            List<Verdict> verdicts = List.of();
            while (verdicts.isEmpty() || verdicts.getFirst().still().toSeconds() < seconds) {
                assertFalse(ranks.waitFor(LOOK_MILLIS, TimeUnit.MILLISECONDS));
                verdicts = Hang.verdicts(this::read, Duration.ofSeconds(1));
            }
            assertEquals(List.of(Cause.STOPPED), verdicts.stream().map(Verdict::cause).toList(), verdicts::toString);
            assertEquals(pid, verdicts.getFirst().json().get("pid").toString());
            assertEquals(0, new ProcessBuilder("kill", "-CONT", pid).start().waitFor());
            while (!read().stream().allMatch(each -> each.communicators().getFirst().enqueued() > operation + 20)) {
                assertFalse(ranks.waitFor(LOOK_MILLIS, TimeUnit.MILLISECONDS));
            }
            assertTrue(read().stream().noneMatch(TracedProcess::failed), output());
        } finally {
            ranks.destroyForcibly().waitFor(); // the ranks end when their host program ends
        }
    }
}
