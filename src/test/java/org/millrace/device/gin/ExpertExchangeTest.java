package org.millrace.device.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.example.millrace.experts.ExpertExchange;
import com.example.millrace.experts.ExpertLayout;
import com.example.millrace.experts.ExpertPlan;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.gin.GinCommunicator;
import org.millrace.gin.GinOptions;
import org.millrace.gin.Window;

/** Dispatch and combine of routed tokens. Every token is compared with a plain reference. */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("slow")
class ExpertExchangeTest {

    @ParameterizedTest
    @CsvSource({"2, shm,    1, V28, 1, 3, 2", "2, socket, 1, V30, 2, 2, 1", "3, shm,    1, V29, 4, 6, 2",
            "4, shm,    1, V30, 2, 4, 3", "4, socket, 2, V28, 3, 4, 2", "5, socket, 1, V29, 2, 3, 2",
            "6, shm,    2, V30, 2, 5, 2", "7, shm,    1, V28, 3, 2, 5", "8, shm,    1, V30, 4, 4, 4",
            "8, shm,    4, V29, 2, 3, 2",})
    void everyTokenIsDispatchedAndCombined(int ranks, String network, int lsaSize, GinDescriptorFormat format,
            int contexts, int channels, int experts) throws Exception {
        boolean rail = lsaSize > 1;
        ExpertPlan plan = new ExpertPlan(ranks / lsaSize, channels, 7, 150, experts, 5, 20251120);
        ExpertLayout layout = new ExpertLayout(plan);
        int batches = 4;
        AtomicLong moved = new AtomicLong();
        try (GinRanks group = new GinRanks(network, ranks)) {
            GinCommunicator[] communicators = group.connect(GinOptions.defaults());
            MemorySegment[] memory = group.memory(layout.windowBytes());
            Window[] windows = group.windows(communicators, memory);
            GinDeviceCommunicator[] devices = group.devices(communicators,
                    GinRequirements.of(contexts, layout.signals(), 0)
                            .withFormat(format)
                            .withLsaSize(lsaSize)
                            .withQueues(8, -20));
            group.run(rank -> {
                ExpertExchange exchange = new ExpertExchange(GinDeviceCommunicators.of(devices[rank]), plan, rail,
                        windows[rank], memory[rank]);
                for (long batch = 0; batch < batches; batch++) {
                    moved.addAndGet(exchange.run(batch));
                }
            });
            Arrays.stream(communicators).forEach(communicator -> assertNull(communicator.failure()));
        }
        assertEquals((long) batches * ranks * 150 * experts, moved.get(), plan.toString());
    }

    @Test
    void aTokenIsSentToOneRankPerExpert() {
        for (int experts = 1; experts <= 6; experts++) {
            ExpertPlan plan = new ExpertPlan(6, 1, 1, 500, experts, 1, 3);
            int[] load = new int[6];
            for (int token = 0; token < plan.tokens(); token++) {
                int count = 0;
                for (int rank = 0; rank < 6; rank++) {
                    if (plan.goesTo(1, 2, token, rank)) {
                        count++;
                        load[rank]++;
                    }
                }
                assertEquals(experts, count, "token " + token);
            }
            for (int each : load) {
                assertTrue(each > 500 * experts / 6 * 7 / 10, "no rank is left out: " + Arrays.toString(load));
            }
        }
    }
}
