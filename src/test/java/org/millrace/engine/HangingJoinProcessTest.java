package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.cli.Run;
import org.millrace.trace.TraceReader;

/** A process that hangs in its first join has a trace, and the command line explains the hang. */
@Tag("slow")
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class HangingJoinProcessTest {

    @TempDir
    private Path directory;
    private final List<Process> ranks = new ArrayList<>();

    private Path output() {
        return directory.resolve("output");
    }

    private Process start(int rank, int size) throws IOException {
        Process started = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "--enable-native-access=ALL-UNNAMED", "-cp",
                System.getProperty("java.class.path"), AllReduceRank.class.getName(), directory.toString(), "" + rank,
                "" + size, "MILLRACE_TRACE_DIRECTORY=" + directory, "MILLRACE_CONNECT_DEADLINE=300s",
                "MILLRACE_STALL_REPORT=1s").redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(output().toFile()))
                .start();
        ranks.add(started);
        return started;
    }

    @AfterEach
    void end() throws InterruptedException {
        for (Process rank : ranks) {
            rank.destroyForcibly().waitFor();
        }
    }

    /** Runs a command until its output contains a text. */
    private String await(String command, String text) throws IOException {
        Run run = Run.of(command, "--directory", directory.toString());
        while (!run.out().contains(text)) {
            assertTrue(ranks.getFirst().isAlive(), Files.readString(output()) + run);
            run = Run.of(command, "--directory", directory.toString());
        }
        return run.out();
    }

    private void awaitJoin(Process rank) throws Exception {
        while (TraceReader.readAll(directory, (file, problem) -> {})
                .stream()
                .noneMatch(each -> each.identity().pid() == rank.pid() && !each.joins().isEmpty())) {
            assertFalse(rank.waitFor(20, TimeUnit.MILLISECONDS), Files.readString(output()));
        }
    }

    @Test
    void theCommandLineNamesTheMissingRankZero() throws Exception {
        String words = "Rank 1 (pid " + start(1, 2).pid() + " on ";
        String why = await("why", words);
        assertTrue(why.startsWith(words) && why.contains(", running) cannot join: rank 0 has not written ")
                && why.matches("(?s).*Nothing has moved for \\d+\\.\\d s\\.\n"), why);
        await("ps", "nothing moves: " + words);
    }

    @Test
    void aRankThatIsKilledInItsJoinIsReportedAsDead() throws Exception {
        // The second rank starts after the first, because a rank that died before another began is of another attempt.
        awaitJoin(start(1, 3));
        Process killed = start(2, 3);
        awaitJoin(killed);
        killed.destroyForcibly().waitFor();
        String why = await("why", "Rank 2 (pid " + killed.pid() + " on ");
        assertTrue(why.contains(", dead)"), why);
    }
}
