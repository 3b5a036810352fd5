package org.millrace.cli.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.cli.Run;
import org.millrace.cli.base.Json;

/** {@code millrace gin}. */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("slow")
class GinCommandTest {

    @ParameterizedTest
    @CsvSource({"gin signal -n 50 --format v28, us one way, 5",
            "gin put -b 1 -e 64K -n 20 --net socket --format v29, 65536, 21",
            "gin alltoall -r 3 -b 8 -e 4K -n 20 --net shm, 4096, 15",
            "gin flood -r 3 -b 8 -e 64 -n 30 --contexts 5 --blocks 13, descriptors/s, 9"})
    void aPatternIsMeasuredAndChecked(String arguments, String expected, int lines) {
        Run run = Run.of(arguments.split(" "));
        assertEquals(0, run.status(), run.toString());
        assertTrue(run.out().contains(expected), run.toString());
        assertEquals(lines, run.out().lines().count(), run.toString());
    }

    /**
     * Each rank sends 61 signals: 50 for the rounds, 10 for the warm-up (a fifth of the rounds), and one at the end.
     */
    @Test
    void whatJavaServedIsSaid() {
        Run run = Run.of("gin", "signal", "-n", "50");
        for (int rank = 0; rank < 2; rank++) {
            String said = "# rank " + rank
                    + ": descriptors served by Java: 61 (0 puts, 0 values, 61 signals alone, 0 gets, 0 flushes;"
                    + " 0 puts and values brought a signal, 0 signals without a frame)";
            assertTrue(run.out().contains(said), run.toString());
        }
    }

    @Test
    void jsonHasWhatTheTableShows(@TempDir Path directory) throws IOException {
        Path file = directory.resolve("gin.json");
        for (String arguments : List.of("put -b 8 -e 16 -n 20", "signal -n 20", "alltoall -b 8 -e 8 -n 5",
                "flood -b 8 -e 8 -n 5")) {
            Run run = Run.of(("gin " + arguments + " --json " + file).split(" "));
            assertEquals(0, run.status(), run.toString());
            Map<?, ?> document = (Map<?, ?>) Json.read(Files.readString(file));
            assertEquals(arguments.split(" ")[0], document.get("pattern"));
            List<?> rows = (List<?>) document.get("results");
            assertEquals(arguments.startsWith("put") ? 2 : 1, rows.size(), document.toString());
            assertTrue(((Map<?, ?>) rows.getFirst()).values().stream().allMatch(Number.class::isInstance),
                    rows.toString());
            assertEquals(List.of(), document.get("failures"));
        }
    }

    @Test
    void whatCannotBeIsExplained() {
        Run three = Run.of("gin", "put", "-r", "3");
        assertEquals(2, three.status(), three.toString());
        assertTrue(three.err().contains("put is to and fro between two ranks (-r 2); alltoall and flood take more"),
                three.toString());
        Run alone = Run.of("gin", "put", "-r", "1");
        assertEquals(2, alone.status(), alone.toString());
        assertTrue(alone.err().contains("put needs two ranks"), alone.toString());
        Run late = Run.of("gin", "put", "-e", "8", "-n", "2000000000", "--deadline", "500ms");
        assertEquals(1, late.status(), late.toString());
        assertTrue(late.err().contains("not finished after 500ms (--deadline)"), late.toString());
        Run lost = Run.of("gin", "put", "-D", "MILLRACE_FAULT=cut:frame=40");
        assertEquals(1, lost.status(), lost.toString());
        assertTrue(lost.err().contains("lost rank"), lost.toString());
        Run garbage = Run.of("gin", "put", "-D", "MILLRACE_FAULT=garbage:frame=40");
        assertEquals(1, garbage.status(), garbage.toString());
        assertTrue(garbage.err().contains("refuses a frame of rank"), garbage.toString());
    }

    @Test
    void ranksThatMeetAfterTheDeadlineEndToo() throws InterruptedException {
        Set<Thread> before = Thread.getAllStackTraces().keySet();
        Run late = Run.of("gin", "put", "-e", "8", "-n", "2000000000", "--deadline", "1ms");
        assertEquals(1, late.status(), late.toString());
        assertTrue(late.err().contains("not finished after 1ms (--deadline)"), late.toString());
        for (Thread thread : Thread.getAllStackTraces().keySet()) {
            if (!before.contains(thread) && thread.getName().startsWith("rank-")) {
                assertTrue(thread.join(Duration.ofSeconds(60)), thread + " goes on");
            }
        }
    }
}
