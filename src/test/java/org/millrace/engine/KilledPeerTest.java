package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * If processes share memory directly, no connection breaks when one of them is killed. The control plane reports the
 * killed process, and the kernels of the other processes end.
 */
@Timeout(180)
@Tag("slow")
class KilledPeerTest {

    @TempDir
    Path folder;
    private final List<Process> children = new ArrayList<>();

    @AfterEach
    void endChildren() throws InterruptedException {
        for (Process child : children) { // each child must end, because other tests count this process's children
            child.destroyForcibly().waitFor(30, TimeUnit.SECONDS);
        }
    }

    private BufferedReader start(int rank, int size, String setting) throws IOException {
        Process child = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1", "-Xmx64m", "--enable-native-access=ALL-UNNAMED", "-cp",
                System.getProperty("java.class.path"), AllReduceRank.class.getName(), folder.toString(), "" + rank,
                "" + size, setting).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        children.add(child);
        return child.inputReader(StandardCharsets.UTF_8);
    }

    @ParameterizedTest
    @CsvSource({"2, 1, NCCL_BUFFSIZE=64K", "3, 0, NCCL_BUFFSIZE=64K", "2, 0, NCCL_SHM_USE_CUDA_MEMCPY=1"})
    void theOthersLearnWhoWasKilled(int size, int victim, String setting) throws Exception {
        List<BufferedReader> outputs = new ArrayList<>();
        for (int rank = 0; rank < size; rank++) {
            outputs.add(start(rank, size, setting));
        }
        for (BufferedReader output : outputs) {
            assertEquals("running", output.readLine());
        }
        Process killed = children.get(victim);
        assertEquals(List.of(), filesOf(killed.pid()), "the memory has no name once both sides have it");
        killed.destroyForcibly();
        for (int rank = 0; rank < size; rank++) {
            if (rank != victim) {
                String told = outputs.get(rank).readLine();
                assertTrue(told != null && told.contains("rank " + victim + " (pid " + killed.pid() + " on ")
                        && told.contains("is gone"), told);
                assertEquals("left []", outputs.get(rank).readLine());
                assertTrue(children.get(rank).waitFor(60, TimeUnit.SECONDS), "rank " + rank + " ends");
                assertEquals(0, children.get(rank).exitValue());
                assertEquals(List.of(), filesOf(children.get(rank).pid()));
            }
        }
    }

    private static List<String> filesOf(long pid) throws IOException {
        try (Stream<Path> files = Files.list(Path.of("/dev/shm"))) {
            return files.map(file -> file.getFileName().toString())
                    .filter(name -> name.startsWith("millrace-") && name.endsWith(".mem")
                            && name.contains("-" + pid + "-"))
                    .toList();
        }
    }
}
