package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.cli.Run;

/** A process that hangs in its first join has a trace, and the command line explains the hang. */
@Tag("slow")
class HangingJoinProcessTest {

    @Test
    @Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    void theCommandLineNamesTheMissingRankZero(@TempDir Path directory) throws Exception {
        Path output = directory.resolve("output");
        Process rank = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "--enable-native-access=ALL-UNNAMED", "-cp",
                System.getProperty("java.class.path"), AllReduceRank.class.getName(), directory.toString(), "1", "2",
                "MILLRACE_TRACE_DIRECTORY=" + directory, "MILLRACE_CONNECT_DEADLINE=300s", "MILLRACE_STALL_REPORT=1s")
                .redirectErrorStream(true)
                .redirectOutput(output.toFile())
                .start();
        try {
            Run why = Run.of("why", "--directory", directory.toString());
            while (why.status() != 3) {
                assertTrue(rank.isAlive(), Files.readString(output) + why);
                Thread.sleep(100);
                why = Run.of("why", "--directory", directory.toString());
            }
            String words = "Rank 1 (pid " + rank.pid() + " on ";
            assertTrue(
                    why.out().startsWith(words) && why.out().contains(", running) cannot join: rank 0 has not written ")
                            && why.out().matches("(?s).*Nothing has moved for \\d+\\.\\d s\\.\n"),
                    why::toString);
            Run ps = Run.of("ps", "--directory", directory.toString());
            while (!ps.out().contains("nothing moves: " + words)) {
                assertTrue(rank.isAlive() && ps.out().contains(" running "), "the rank reports the hang: " + ps);
                Thread.sleep(100);
                ps = Run.of("ps", "--directory", directory.toString());
            }
        } finally {
            rank.destroyForcibly().waitFor();
        }
    }
}
