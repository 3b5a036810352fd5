package org.millrace.bootstrap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.MillraceException;

/** Processes that are killed with SIGKILL. */
@Timeout(180)
@Tag("slow")
class ProcessTest {

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

    private Process start(int rank, String wait) throws IOException {
        Process child = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx64m", "-cp", System.getProperty("java.class.path"),
                ChildRank.class.getName(), "file:" + folder.resolve("group"), String.valueOf(rank),
                String.valueOf(SIZE), wait).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        children.add(child);
        return child;
    }

    /** The other ranks start before rank 0. Without a run ID, rank 0 accepts such early ranks only after a moment. */
    @Test
    void ranksMayStartBeforeRankZero() throws Exception {
        List<BufferedReader> outputs = new ArrayList<>();
        for (int rank = SIZE - 1; rank >= 0; rank--) {
            outputs.add(start(rank, "poll").inputReader(StandardCharsets.UTF_8));
        }
        for (BufferedReader output : outputs) {
            assertEquals("joined", output.readLine());
        }
    }

    @ParameterizedTest
    @CsvSource({"0, poll", "0, gather", "2, poll", "2, gather"})
    void theOthersLearnThatAProcessWasKilled(int victim, String wait) throws Exception {
        List<BufferedReader> outputs = new ArrayList<>();
        for (int rank = 0; rank < SIZE; rank++) {
            outputs.add(start(rank, rank == victim ? "poll" : wait).inputReader(StandardCharsets.UTF_8));
        }
        for (BufferedReader output : outputs) {
            assertEquals("joined", output.readLine());
        }
        Process killed = children.get(victim);
        killed.destroyForcibly();
        for (int rank = 0; rank < SIZE; rank++) {
            if (rank != victim) {
                String told = outputs.get(rank).readLine();
                String loss = "rank " + victim + " (pid " + killed.pid() + " on " + RankIdentity.local(0, "").host()
                        + ") is gone: ";
                assertTrue(told.contains(loss), told);
                assertEquals("left", outputs.get(rank).readLine());
                assertTrue(children.get(rank).waitFor(60, TimeUnit.SECONDS), "rank " + rank + " ends");
                assertEquals(0, children.get(rank).exitValue());
            }
        }
        try (Stream<Path> files = Files.list(folder)) {
            assertEquals(List.of(), files.toList());
        }
    }

    /**
     * A rank in a separate process. It prints each event in one line, and waits to be killed or to learn of another
     * rank's loss.
     */
    private static final class ChildRank {

        private ChildRank() {}

        /**
         * Runs the rank. Arguments: rendezvous, rank, size, and {@code poll} or {@code gather} for the kind of wait.
         */
        public static void main(String[] arguments) {
            int rank = Integer.parseInt(arguments[1]);
            int size = Integer.parseInt(arguments[2]);
            ControlPlane plane = ControlPlane.join(arguments[0], rank, size, Duration.ofSeconds(60));
            plane.barrier();
            System.out.println("joined");
            try {
                if (arguments[3].equals("gather")) {
                    plane.allGather(new byte[1]);
                } else {
                    long end = System.nanoTime() + Duration.ofSeconds(60).toNanos();
                    while (plane.failure() == null && System.nanoTime() - end < 0) {
                        LockSupport.parkNanos(100_000);
                    }
                    System.out.println(plane.failure() == null ? "nothing"
                            : plane.failure().rank() + " " + plane.failure().message());
                }
            } catch (MillraceException e) {
                System.out.println(e.getMessage());
            }
            plane.close();
            System.out.println("left");
        }
    }
}
