package org.millrace.device.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.example.millrace.experts.ExpertPlan;
import com.example.millrace.experts.HostedPlan;
import com.example.millrace.experts.HybridExchange;
import com.example.millrace.experts.HybridLayout;
import com.example.millrace.experts.LowLatencyExchange;
import com.example.millrace.experts.LowLatencyLayout;
import com.example.millrace.experts.TokenExchange;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.gin.GinCommunicator;
import org.millrace.gin.GinOptions;
import org.millrace.gin.Window;

/**
 * Hosts of several ranks exchange tokens of a neural network. Tokens are forwarded through a rank of the receiving host
 * or sent directly. Every token is compared with the plan.
 */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("slow")
class HybridExchangeTest {

    private static final int TOKENS = 150;
    private static final int BATCHES = 4;

    /** Program of one rank. */
    @FunctionalInterface
    private interface Part {
        void run(GinDeviceCommunicator device, Window window, MemorySegment memory) throws Exception;
    }

    @ParameterizedTest
    @CsvSource({"2, 2, shm, 1, 3, 2, false", "2, 4, shm, 4, 4, 3, false", "4, 2, socket, 2, 2, 6, false",
            "1, 3, shm, 1, 2, 2, false", "3, 1, shm, 2, 3, 1, false", "2, 2, socket, 1, 1, 2, true",
            "2, 4, shm, 3, 1, 3, true", "4, 2, shm, 4, 1, 8, true", "1, 2, shm, 1, 1, 1, true"})
    void everyTokenIsDispatchedAndCombined(int hosts, int perHost, String network, int contexts, int channels,
            int experts, boolean lowLatency) throws Exception {
        int ranks = hosts * perHost;
        HostedPlan hosted =
                new HostedPlan(new ExpertPlan(ranks, channels, 7, TOKENS, experts, 5, 20251120 + ranks), perHost);
        AtomicLong moved = new AtomicLong();
        long bytes = lowLatency ? new LowLatencyLayout(hosted).windowBytes() : new HybridLayout(hosted).windowBytes();
        int signals = lowLatency ? new LowLatencyLayout(hosted).signals() : new HybridLayout(hosted).signals();
        run(network, ranks, perHost, contexts, signals, bytes, (device, window, memory) -> {
            try (TokenExchange exchange =
                    lowLatency ? new LowLatencyExchange(GinDeviceCommunicators.of(device), hosted, window, memory)
                            : new HybridExchange(GinDeviceCommunicators.of(device), hosted, window, memory)) {
                for (long batch = 0; batch < BATCHES; batch++) {
                    moved.addAndGet(exchange.run(batch));
                }
            }
        });
        assertEquals((long) BATCHES * ranks * TOKENS * experts, moved.get(), hosted.toString());
    }

    /**
     * No rank leaves a barrier before all ranks have arrived. After the barrier, each rank sees the stores that the
     * host's other ranks made before the barrier.
     */
    @Test
    void theBarrierHoldsAllRanks() throws Exception {
        int rounds = 200;
        AtomicInteger[] came = new AtomicInteger[4];
        Arrays.setAll(came, rank -> new AtomicInteger());
        run("shm", 4, 2, 1, LsaMemory.signals(), LsaMemory.bytes(2) + 16, (device, window, memory) -> {
            HostGin gin = new HostGin(device, 0);
            LsaMemory near = LsaMemory.connect(gin, window, memory, 0, 0);
            WorldBarrier barrier = new WorldBarrier(gin, near, LsaMemory.bytes(2), 0);
            for (int round = 1; round <= rounds; round++) {
                near.of(1 - near.self()).set(ValueLayout.JAVA_LONG, LsaMemory.bytes(2) + 8, round);
                came[device.rank()].set(round);
                barrier.sync();
                for (AtomicInteger each : came) {
                    assertEquals(0, Math.min(0, each.get() - round));
                }
                assertEquals(round, memory.get(ValueLayout.JAVA_LONG, LsaMemory.bytes(2) + 8));
                barrier.sync();
            }
        });
    }

    private static void run(String network, int ranks, int perHost, int contexts, int signals, long bytes, Part part)
            throws Exception {
        try (GinRanks group = new GinRanks(network, ranks)) {
            GinCommunicator[] communicators = group.connect(GinOptions.defaults());
            MemorySegment[] memory = group.memory(bytes);
            Window[] windows = group.windows(communicators, memory);
            GinDeviceCommunicator[] devices = group.devices(communicators,
                    GinRequirements.of(contexts, signals, 0).withLsaSize(perHost).withQueues(8, -20));
            group.run(rank -> part.run(devices[rank], windows[rank], memory[rank]));
            Arrays.stream(communicators).forEach(communicator -> assertNull(communicator.failure()));
        }
    }

    @Test
    void hostsMustHaveEqualNumbersOfRanks() {
        ExpertPlan plan = new ExpertPlan(6, 1, 1, 1, 1, 1, 1);
        assertThrows(IllegalArgumentException.class, () -> new HostedPlan(plan, 4));
        assertThrows(IllegalArgumentException.class, () -> new HostedPlan(new ExpertPlan(65, 1, 1, 1, 1, 1, 1), 1));
    }
}
