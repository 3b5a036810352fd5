package org.millrace.device.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.example.millrace.experts.ExpertExchange;
import com.example.millrace.experts.ExpertLayout;
import com.example.millrace.experts.ExpertPlan;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.millrace.gin.GinCommunicator;
import org.millrace.gin.GinOptions;
import org.millrace.gin.Window;

/** A communicator has several device communicators. Several exchanges use the signals of the device communicators. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class GinDeviceCommunicatorsTest {

    private static final int RANKS = 2;

    /**
     * Each device communicator has its own contexts and signals. Closing a device communicator frees its contexts and
     * signals.
     */
    @Test
    void everyDeviceCommunicatorHasItsOwnContexts() throws Exception {
        try (GinRanks group = new GinRanks("shm", RANKS)) {
            GinCommunicator[] communicators = group.connect(GinOptions.defaults());
            GinRequirements requirements = GinRequirements.of(2, 3, 0);
            GinDeviceCommunicator[] first = group.devices(communicators, requirements);
            GinDeviceCommunicator[] second = group.devices(communicators, requirements);
            GinDeviceCommunicator[] third = group.devices(communicators, requirements);
            group.run(rank -> {
                second[rank].close();
                assertEquals(2, communicators[rank].freeContexts(2), "the place of the second");
                assertEquals(6, communicators[rank].freeContexts(3), "behind the third");
            });
            GinDeviceCommunicator[] fourth = group.devices(communicators, requirements);
            group.run(rank -> {
                GinDeviceCommunicators devices =
                        new GinDeviceCommunicators(List.of(first[rank], third[rank], fourth[rank]));
                HostGin[] gins = devices.hold();
                assertEquals(6, gins.length);
                for (int i = 0; i < gins.length; i++) {
                    gins[i].signal(devices.first().world(), 1 - rank, RemoteAction.add(1, 100 + i));
                }
                GinDeviceCommunicators.quiet(gins);
                for (int i = 0; i < gins.length; i++) {
                    assertTrue(gins[i].isFlushed());
                    gins[i].waitSignal(1, 1);
                    assertEquals(100 + i, gins[i].readSignal(1), "hold " + i);
                }
                GinBarrier.world(gins[0], 0).sync();
            });
            for (GinCommunicator communicator : communicators) {
                assertNull(communicator.failure());
            }
        }
    }

    /** The exchanges of two buffers share three device communicators. Each exchange uses its own range of signals. */
    @Test
    void twoExchangesShareDeviceCommunicators() throws Exception {
        ExpertPlan plan = new ExpertPlan(RANKS, 4, 7, 100, 2, 5, 20251120);
        ExpertLayout layout = new ExpertLayout(plan);
        AtomicLong moved = new AtomicLong();
        try (GinRanks group = new GinRanks("shm", RANKS)) {
            GinCommunicator[] communicators = group.connect(GinOptions.defaults());
            MemorySegment[] one = group.memory(layout.windowBytes());
            MemorySegment[] other = group.memory(layout.windowBytes());
            Window[] ones = group.windows(communicators, one);
            Window[] others = group.windows(communicators, other);
            GinRequirements requirements = GinRequirements.of(1, 2 * layout.signals() + 1, 0);
            List<GinDeviceCommunicator[]> made = List.of(group.devices(communicators, requirements),
                    group.devices(communicators, requirements), group.devices(communicators, requirements));
            group.run(rank -> {
                GinDeviceCommunicators devices =
                        new GinDeviceCommunicators(made.stream().map(each -> each[rank]).toList());
                ExpertExchange exchange = new ExpertExchange(devices, plan, false, ones[rank], one[rank]);
                ExpertExchange second = new ExpertExchange(devices, plan, false, others[rank], other[rank]);
                for (long batch = 0; batch < 3; batch++) {
                    moved.addAndGet(exchange.run(batch));
                    moved.addAndGet(second.run(batch + 10));
                }
                HostGin gin = devices.hold()[0];
                assertTrue(gin.readSignal(layout.signals() - 1) > 0, "the first one's counts came");
                assertTrue(gin.readSignal(2 * layout.signals() - 1) > 0, "the second one's counts came");
                assertEquals(2 * layout.signals(), devices.signalsBase(1));
                String said = assertThrows(IllegalArgumentException.class, () -> devices.signalsBase(1)).getMessage();
                assertTrue(said.contains("required with " + (2 * layout.signals() + 1)), said);
            });
        }
        assertEquals(6L * RANKS * 100 * 2, moved.get());
    }

    @Test
    void onlyEqualDeviceCommunicatorsCanBeCombined() throws Exception {
        try (GinRanks group = new GinRanks("shm", RANKS)) {
            GinCommunicator[] communicators = group.connect(GinOptions.defaults());
            GinDeviceCommunicator[] one = group.devices(communicators, GinRequirements.of(1, 1, 0));
            GinDeviceCommunicator[] other = group.devices(communicators, GinRequirements.of(1, 2, 0));
            assertThrows(IllegalArgumentException.class, () -> new GinDeviceCommunicators(List.of(one[0], other[0])));
            assertThrows(IllegalArgumentException.class, () -> new GinDeviceCommunicators(List.of(one[0], one[1])));
            assertThrows(IllegalArgumentException.class, () -> new GinDeviceCommunicators(List.of()));
            GinDeviceCommunicators.of(one[0]).signalsBase(1);
        }
    }
}
