package org.millrace.device.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.abi.gin.GinGpuContext;
import org.millrace.ffi.device.ncclGinProxyGpuCtx_v2_t;
import org.millrace.gin.GinCommunicator;
import org.millrace.gin.GinException;
import org.millrace.gin.GinOptions;
import org.millrace.gin.Window;
import org.millrace.net.ConnectionException;
import org.millrace.net.Listener;
import org.millrace.net.connection.FullMesh;

/** Windows and contexts are created and closed while the agents of the ranks run. */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class GinLifeTest {

    @ParameterizedTest
    @ValueSource(strings = {"shm", "socket", "ucx"})
    void aPeerThatIsAheadIsWaitedFor(String network) throws Exception {
        try (GinRanks group = new GinRanks(network, 2)) {
            GinCommunicator[] communicators = group.connect(GinOptions.defaults());
            MemorySegment[] memory = group.memory(64);
            Window ahead = group.window(communicators[0], memory[0]);
            GinRequirements requirements = GinRequirements.of(1, 1, 1);
            try (GinDeviceCommunicator device = new GinDeviceCommunicator(communicators[0], requirements)) {
                HostGin gin = new HostGin(device, 0);
                memory[0].set(ValueLayout.JAVA_LONG, 0, 17);
                gin.put(device.world(), 1, ahead, 8, ahead, 0, 8, RemoteAction.increment(0), 0);
                gin.waitCounter(0, 1); // the put is in flight, and rank 1 has neither a window nor a context yet
                group.window(communicators[1], memory[1]);
                try (GinDeviceCommunicator late = new GinDeviceCommunicator(communicators[1], requirements)) {
                    new HostGin(late, 0).waitSignal(0, 1);
                    assertEquals(17, memory[1].get(ValueLayout.JAVA_LONG, 8));
                }
            }
        }
    }

    @Test
    void aWaitForAMissingWindowIsBounded() throws Exception {
        try (GinRanks group = new GinRanks("shm", 2)) {
            GinCommunicator[] communicators = group.connect(new GinOptions(4096, 8, Duration.ofMillis(100)));
            GinDeviceCommunicator[] devices = group.devices(communicators, GinRequirements.of(1, 1, 0));
            Window only = group.window(communicators[0], group.memory(64)[0]);
            HostGin gin = new HostGin(devices[0], 0);
            gin.putValue(devices[0].world(), 1, only, 0, 1, 8, RemoteAction.NONE);
            GinException failure = assertThrows(GinException.class, () -> new HostGin(devices[1], 0).waitSignal(0, 1));
            assertTrue(failure.getMessage().contains("rank 1 refuses a frame of rank 0 over"), failure.getMessage());
            assertTrue(
                    failure.getMessage()
                            .contains("window 1 is not registered (there are 0), and was not within 100 ms"),
                    failure.getMessage());
        }
    }

    @Test
    void aClosedWindowIsRefusedAndItsHandleNotUsedAgain() throws Exception {
        try (GinRanks group = new GinRanks("shm", 2)) {
            GinCommunicator[] communicators = group.connect(GinOptions.defaults());
            MemorySegment[] memory = group.memory(64);
            Window[] windows = group.windows(communicators, memory);
            GinDeviceCommunicator[] devices = group.devices(communicators, GinRequirements.of(1, 1, 0));
            HostGin gin = new HostGin(devices[0], 0);
            gin.put(devices[0].world(), 1, windows[0], 0, windows[0], 8, 8, RemoteAction.increment(0), -1);
            gin.flush();
            new HostGin(devices[1], 0).waitSignal(0, 1);
            for (int rank = 0; rank < 2; rank++) {
                communicators[rank].deregister(windows[rank]);
                communicators[rank].deregister(windows[rank]); // a second call for the same window does nothing
            }
            Window[] next = group.windows(communicators, memory);
            assertEquals(2, next[0].handle());
            gin.put(devices[0].world(), 1, next[0], 0, next[0], 8, 8, RemoteAction.increment(0), -1);
            new HostGin(devices[1], 0).waitSignal(0, 2);
            gin.put(devices[0].world(), 1, next[0], 0, windows[0], 8, 8, RemoteAction.increment(0), -1);
            GinException refused = assertThrows(GinException.class, gin::flush);
            assertTrue(refused.getMessage().contains("from window 1 at 8, signal 0): window 1 was closed"),
                    refused.getMessage());
        }
    }

    @Test
    void contextsOfEveryNumberAreAddedAndRemoved() throws Exception {
        try (GinRanks group = new GinRanks("shm", 2)) {
            GinCommunicator[] communicators = group.connect(GinOptions.defaults());
            for (int round = 0; round < 20; round++) {
                GinDeviceCommunicator[] devices = new GinDeviceCommunicator[2];
                int contexts = 1 + round % 3;
                group.run(rank -> {
                    devices[rank] = new GinDeviceCommunicator(communicators[rank], GinRequirements.of(contexts, 1, 0));
                    HostGin gin = new HostGin(devices[rank], contexts - 1);
                    gin.signal(devices[rank].world(), 1 - rank, RemoteAction.add(0, 5));
                    gin.waitSignal(0, 5);
                    gin.flush();
                });
                devices[0].close();
                devices[1].close();
                devices[1].close();
            }
            assertNull(communicators[0].failure());
        }
    }

    @ParameterizedTest
    @EnumSource(GinDescriptorFormat.class)
    void aKernelFindsItsQueues(GinDescriptorFormat format) throws Exception {
        try (GinRanks group = new GinRanks("shm", 1)) {
            GinCommunicator[] communicators = group.connect(GinOptions.defaults());
            GinDeviceCommunicator[] devices =
                    group.devices(communicators, GinRequirements.of(2, 1, 1).withFormat(format).withQueues(16, 0));
            MemorySegment context = devices[0].gpuContext(1);
            GinGpuContext struct = GinGpuContext.of(context);
            assertEquals(1, ncclGinProxyGpuCtx_v2_t.nranks(context));
            assertEquals(16, struct.queueSize());
            assertEquals(format == GinDescriptorFormat.V30, struct.hasSignalOffsets());
            assertFalse(struct.queues() == 0 || struct.cis() == 0);
            assertFalse(ncclGinProxyGpuCtx_v2_t.pis(context).address() == 0
                    || ncclGinProxyGpuCtx_v2_t.counters(context).address() == 0
                    || ncclGinProxyGpuCtx_v2_t.signals(context).address() == 0);
            HostGin alone = new HostGin(devices[0], 1);
            alone.signal(devices[0].world(), 0, RemoteAction.add(0, 9));
            alone.waitSignal(0, 9);
            alone.flush();
        }
    }

    @Test
    void missingRanksAreNamed() throws Exception {
        try (GinRanks group = new GinRanks("shm", 3)) {
            byte[][] addresses = new byte[3][];
            for (int rank = 0; rank < 3; rank++) {
                addresses[rank] = group.listeners[rank].address();
            }
            Listener here = group.listeners[0];
            ConnectionException late = assertThrows(ConnectionException.class, () -> FullMesh.connect(group.networks[0],
                    here, addresses, 0, 99, 0, Duration.ofMillis(50), () -> null));
            assertEquals("rank 0: no connection with rank 1, 2 within 50 ms", late.getMessage());
            ConnectionException aborted =
                    assertThrows(ConnectionException.class, () -> FullMesh.connect(group.networks[0], here, addresses,
                            0, 98, 0, Duration.ofSeconds(20), () -> new IllegalStateException("the user left")));
            assertEquals("rank 0 stops connecting: the user left", aborted.getMessage());
        }
    }
}
