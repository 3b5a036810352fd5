package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.cli.ChildMain;
import org.millrace.cli.Run;

/** A process that hangs in its first join has a trace, and the command line explains the hang. */
@Tag("slow")
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class HangingJoinProcessTest {

    @TempDir
    private Path directory;
    private final List<Process> ranks = new ArrayList<>();

    /** Starts a rank, and waits until it has reported the stall of its join. */
    private Process stalled(int rank, int size) throws IOException {
        ProcessBuilder builder = ChildMain.builder(AllReduceRank.class, directory.toString(), "" + rank, "" + size,
                "MILLRACE_TRACE_DIRECTORY=" + directory, "MILLRACE_CONNECT_DEADLINE=300s", "MILLRACE_STALL_REPORT=1s");
        builder.environment().put("JAVA_TOOL_OPTIONS", "-Dorg.apache.logging.log4j.level=WARN");
        Process started = builder.redirectErrorStream(true).start();
        ranks.add(started);
        assertNotNull(ChildMain.readUntil(started.inputReader(), "nothing moves"), "the rank has ended");
        return started;
    }

    @AfterEach
    void end() throws InterruptedException {
        for (Process rank : ranks) {
            rank.destroyForcibly().waitFor();
        }
    }

    private String run(String command) {
        return Run.of(command, "--directory", directory.toString()).out();
    }

    @Test
    void theCommandLineNamesTheMissingRankZero() throws Exception {
        String words = "Rank 1 (pid " + stalled(1, 2).pid() + " on ";
        String why = run("why");
        assertTrue(why.startsWith(words) && why.contains(", running) cannot join: rank 0 has not written ")
                && why.matches("(?s).*Nothing has moved for \\d+\\.\\d s\\.\n"), why);
        String ps = run("ps");
        assertTrue(ps.contains("nothing moves: " + words), ps);
    }

    @Test
    void aRankThatIsKilledInItsJoinIsReportedAsDead() throws Exception {
        // The killed rank starts last. A rank that died before another rank started would count as a rank of a previous
        // attempt.
        stalled(1, 3);
        Process killed = stalled(2, 3);
        killed.destroyForcibly().waitFor();
        String why = run("why");
        assertTrue(why.contains("Rank 2 (pid " + killed.pid() + " on ") && why.contains(", dead)"), why);
    }
}
