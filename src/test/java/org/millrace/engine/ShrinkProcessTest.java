package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Processes continue after another process is killed or stopped. When a stopped process resumes, it learns that the
 * others have excluded it.
 */
@Timeout(180)
@Tag("slow")
class ShrinkProcessTest {

    private static final int SIZE = 3;

    @TempDir
    Path folder;
    private final List<Process> children = new ArrayList<>();

    @AfterEach
    void endChildren() throws InterruptedException {
        for (Process child : children) { // each child must end, because other tests count this process's children
            child.destroyForcibly().waitFor(30, TimeUnit.SECONDS);
        }
    }

    private void signal(int rank, String name) throws Exception {
        assertEquals(0, new ProcessBuilder("kill", "-" + name, "" + children.get(rank).pid()).start().waitFor());
    }

    @ParameterizedTest
    @CsvSource({"KILL, 0, 110", "STOP, 0, 110", "STOP, 2, 11"})
    void theOthersContinue(String signal, int victim, int sum) throws Exception {
        List<BufferedReader> outputs = new ArrayList<>();
        for (int rank = 0; rank < SIZE; rank++) {
            Process child = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                    "-XX:TieredStopAtLevel=1", "-Xmx64m", "--enable-native-access=ALL-UNNAMED", "-cp",
                    System.getProperty("java.class.path"), ShrinkRank.class.getName(), folder.toString(), "" + rank,
                    "" + SIZE).redirectError(ProcessBuilder.Redirect.INHERIT).start();
            children.add(child);
            outputs.add(child.inputReader(StandardCharsets.UTF_8));
        }
        for (BufferedReader output : outputs) {
            assertEquals("running", output.readLine());
        }
        signal(victim, signal);
        int next = 0;
        for (int rank = 0; rank < SIZE; rank++) {
            if (rank != victim) {
                assertEquals("rank " + next++ + " of 2, sum " + sum, outputs.get(rank).readLine());
                assertEquals("left []", outputs.get(rank).readLine());
                assertTrue(children.get(rank).waitFor(60, TimeUnit.SECONDS), "rank " + rank + " ends");
            }
        }
        if (signal.equals("STOP")) {
            signal(victim, "CONT");
            String said = outputs.get(victim).readLine();
            assertTrue(said != null && said.startsWith("rank " + victim + ": the other ranks continue without it"),
                    said);
            assertEquals("left []", outputs.get(victim).readLine());
        }
    }
}
