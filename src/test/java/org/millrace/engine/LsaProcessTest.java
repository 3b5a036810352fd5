package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.example.millrace.experts.ExpertPlan;
import com.example.millrace.experts.HostedPlan;
import com.example.millrace.experts.HybridExchange;
import com.example.millrace.experts.HybridLayout;
import com.example.millrace.experts.LowLatencyExchange;
import com.example.millrace.experts.LowLatencyLayout;
import com.example.millrace.experts.TokenExchange;
import java.lang.foreign.Arena;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.device.gin.GinDeviceCommunicators;
import org.millrace.device.gin.GinRequirements;
import org.millrace.net.shm.SharedMemory;

/** Ranks on one host, one of them in a separate process. They store into each other's windows. */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("slow")
class LsaProcessTest {

    private static final HostedPlan HOSTED = new HostedPlan(new ExpertPlan(2, 2, 5, 60, 1, 4, 7), 2);
    private static final int BATCHES = 3;

    @TempDir
    Path folder;

    @ParameterizedTest
    @ValueSource(strings = {"hybrid", "low-latency"})
    void tokensGoToAnotherProcessByStores(String mode) throws Exception {
        assumeTrue(SharedMemory.sealedDomain() != 0, "this machine has no sealed memory");
        String rendezvous = "file:" + folder.resolve("group");
        Process child = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1", "-Xmx64m", "--enable-native-access=ALL-UNNAMED", "-cp",
                System.getProperty("java.class.path"), ChildRank.class.getName(), rendezvous, mode)
                .redirectErrorStream(true)
                .start();
        try {
            long moved = run(rendezvous, 0, mode);
            String said = new String(child.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            assertTrue(child.waitFor(30, TimeUnit.SECONDS) && child.exitValue() == 0, said);
            assertEquals((long) BATCHES * 2 * 60, moved + Long.parseLong(said.strip()));
        } finally {
            child.destroyForcibly();
        }
    }

    private static long run(String rendezvous, int number, String mode) {
        HybridLayout hybrid = new HybridLayout(HOSTED);
        LowLatencyLayout lowLatency = new LowLatencyLayout(HOSTED);
        boolean twoLevels = mode.equals("hybrid");
        try (Arena arena = Arena.ofShared(); GinRank rank = GinRank.join(rendezvous, number, 2, Map.of())) {
            GinRank.LocalWindow window =
                    rank.window(arena, twoLevels ? hybrid.windowBytes() : lowLatency.windowBytes());
            GinDeviceCommunicators devices = GinDeviceCommunicators.of(rank.device(
                    GinRequirements.of(1, twoLevels ? hybrid.signals() : lowLatency.signals(), 0).withLsaSize(2)));
            long moved = 0;
            try (TokenExchange exchange =
                    twoLevels ? new HybridExchange(devices, HOSTED, window.window(), window.memory())
                            : new LowLatencyExchange(devices, HOSTED, window.window(), window.memory())) {
                for (long batch = 0; batch < BATCHES; batch++) {
                    moved += exchange.run(batch);
                }
                rank.barrier();
            }
            return moved;
        }
    }

    /** A rank in a separate process. It prints the number of tokens that its experts (of a neural network) received. */
    private static final class ChildRank {

        private ChildRank() {}

        /** Runs the rank. Arguments: rendezvous, mode. */
        public static void main(String[] arguments) {
            System.out.println(run(arguments[0], 1, arguments[1]));
        }
    }
}
