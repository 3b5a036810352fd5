package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.device.gin.GinBarrier;
import org.millrace.device.gin.GinDeviceCommunicator;
import org.millrace.device.gin.GinRequirements;
import org.millrace.device.gin.HostGin;
import org.millrace.device.gin.RemoteAction;
import org.millrace.gin.GinException;
import org.millrace.net.ucx.Ucx;

/** GIN between processes, one of them killed with SIGKILL. */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("slow")
class GinProcessTest {

    private static final int SIZE = 3;

    @TempDir
    Path folder;
    private final Process[] children = new Process[SIZE];

    @AfterEach
    void endChildren() throws InterruptedException {
        for (Process child : children) {
            if (child != null) {
                child.destroyForcibly().waitFor(30, TimeUnit.SECONDS);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"shm", "socket", "ucx"})
    void aKilledProcessIsNamed(String network) throws Exception {
        Ucx.assumeUsable(network);
        String rendezvous = "file:" + folder.resolve("group");
        for (int rank = 1; rank < SIZE; rank++) {
            children[rank] = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                    "-XX:TieredStopAtLevel=1", "-Xmx64m", "--enable-native-access=ALL-UNNAMED", "-cp",
                    System.getProperty("java.class.path"), GinChildRank.class.getName(), rendezvous,
                    String.valueOf(rank), String.valueOf(SIZE), network).redirectError(ProcessBuilder.Redirect.INHERIT)
                    .start();
        }
        BufferedReader survivor = children[1].inputReader(StandardCharsets.UTF_8);
        try (Arena arena = Arena.ofShared();
                GinRank self = GinRank.join(rendezvous, 0, SIZE, Map.of("MILLRACE_NET", network))) {
            GinRank.LocalWindow window = self.window(arena, 64);
            GinDeviceCommunicator device = self.device(GinRequirements.of(2, 1, 0));
            HostGin gin = new HostGin(device, 1);
            gin.waitSignal(0, SIZE - 1);
            assertEquals(1, window.memory().get(ValueLayout.JAVA_LONG, 8));
            assertEquals(2, window.memory().get(ValueLayout.JAVA_LONG, 16));
            GinBarrier.world(gin, 0).sync();
            children[2].destroyForcibly();
            GinException failure = assertThrows(GinException.class, () -> {
                while (true) {
                    gin.putValue(device.world(), 2, window.window(), 0, 1, 8, RemoteAction.increment(0));
                    gin.waitSignal(0, Long.MAX_VALUE);
                }
            });
            // rank 1 also loses rank 2 and fails; this rank may detect that failure before the loss of rank 2
            assertTrue(failure.getMessage().contains("lost rank 2") || failure.getMessage().contains("lost rank 1"),
                    failure.getMessage());
        }
        String told = survivor.readLine();
        assertTrue(told.contains("lost rank 2") || told.contains("lost rank 0"), told);
    }

    /** A GIN rank in a separate process. It puts its number to rank 0, prints a line, and waits to be killed. */
    private static final class GinChildRank {

        private GinChildRank() {}

        /** Runs the rank. Arguments: rendezvous, rank, size, network. */
        public static void main(String[] arguments) {
            int rank = Integer.parseInt(arguments[1]);
            try (Arena arena = Arena.ofShared();
                    GinRank joined = GinRank.join(arguments[0], rank, Integer.parseInt(arguments[2]),
                            Map.of("MILLRACE_NET", arguments[3]))) {
                GinRank.LocalWindow window = joined.window(arena, 64);
                GinDeviceCommunicator device = joined.device(GinRequirements.of(2, 1, 0));
                HostGin gin = new HostGin(device, 1);
                gin.putValue(device.world(), 0, window.window(), 8L * rank, rank, 8, RemoteAction.increment(0));
                GinBarrier.world(gin, 0).sync();
                gin.waitSignal(0, Long.MAX_VALUE);
            } catch (RuntimeException e) {
                System.out.println(e.getMessage());
            }
        }
    }
}
