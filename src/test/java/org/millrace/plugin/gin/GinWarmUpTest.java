package org.millrace.plugin.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.gin.GinServed;
import org.millrace.plugin.host.CapturedLog;

/** The warm-up of GIN, which executes operations before the first kernel posts. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("slow")
class GinWarmUpTest {

    private static final int PUTS = 400;
    private static final Duration LIMIT = Duration.ofSeconds(30);

    @BeforeEach
    void capture() {
        CapturedLog.begin();
    }

    private static GinResources resources(String network) {
        return new GinResources(
                Map.of("MILLRACE_GIN", "host", "MILLRACE_NET", network, "NCCL_SOCKET_IFNAME", "lo")::get);
    }

    /** Waits for the warm-up's threads. They end just after the warm-up has their results. */
    private static void awaitThreads() throws InterruptedException {
        for (Thread thread : Thread.getAllStackTraces().keySet()) {
            if (thread.getName().contains("gin-warm-up")) {
                assertTrue(thread.join(LIMIT), () -> thread + " does not end");
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"auto", "socket"})
    void everyKindIsCarriedOutBothWaysAndNothingIsLeft(String network) throws Exception {
        GinServed nccls = GinGroup.Totals.served();
        GinWarmUp warmUp = new GinWarmUp(resources(network), GinDescriptorFormat.V30, true, PUTS, LIMIT);
        warmUp.run();
        GinServed served = warmUp.served();
        assertEquals(2 * 2 * PUTS, served.descriptors(), () -> CapturedLog.lines().toString());
        assertTrue(Math.min(served.puts(), Math.min(served.values(), served.signals())) >= PUTS / 2, served.toString());
        assertTrue(served.reached() > 0 && served.reached() < served.signals() + served.signalled(),
                "in memory and in frames: " + served);
        assertEquals(nccls, GinGroup.Totals.served());
        assertEquals(List.of(), GinRankPair.files());
        awaitThreads();
    }

    @Test
    void itCeasesWithTheFirstDescriptorOfAKernel() throws Exception {
        GinWarmUp warmUp = new GinWarmUp(resources("auto"), GinDescriptorFormat.V30, true, PUTS, LIMIT);
        try (GinRankPair pair = new GinRankPair("shm", true, true)) {
            GinGroup.Served[] served = new GinGroup.Served[2];
            GinRankPair.together(rank -> served[rank] = pair.groups[rank].createContexts(GinDescriptorFormat.V30, 1,
                    GinKernel.SIGNALS, GinKernel.SIGNALS, 16));
            GinKernel kernel = new GinKernel(GinDescriptorFormat.V30, served[0].deviceHandle().address(), 0,
                    pair.windows[0].handle(), 1);
            while (kernel.turn()) {
                Thread.onSpinWait();
            }
            warmUp.run();
            assertEquals(GinServed.NONE, warmUp.served());
            for (GinGroup.Served each : served) {
                each.close();
            }
        }
    }

    @Test
    void theFirstContextsFindItOver() {
        GinWarmUp warmUp = new GinWarmUp(resources("auto"), GinDescriptorFormat.V30, true, Integer.MAX_VALUE, LIMIT);
        warmUp.finish();
        warmUp.run();
        assertEquals(GinServed.NONE, warmUp.served(), "it was told to end, and does not go on");
    }

    @Test
    void aNetworkThatCannotBeUsedIsForOthersToTell() {
        GinResources resources = new GinResources(Map.of("MILLRACE_GIN", "host", "MILLRACE_NET", "socket",
                "MILLRACE_SOCKET_ADDRESSES", "192.0.2.1")::get);
        GinWarmUp warmUp = new GinWarmUp(resources, GinDescriptorFormat.V30, true, PUTS, LIMIT);
        warmUp.run();
        assertEquals(GinServed.NONE, warmUp.served());
        assertTrue(CapturedLog.lines().stream().noneMatch(line -> line.contains("WARN")), "only a trace");
    }
}
