package org.millrace.device.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.gin.GinCommunicator;
import org.millrace.gin.GinException;
import org.millrace.gin.GinOptions;
import org.millrace.gin.Window;

/**
 * A rank fails, closes, or sends invalid requests. The communicators of the other ranks fail with a message that names
 * the rank. Other communicators continue.
 */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class LostPeerTest {

    private static final VarHandle FLAG = ValueLayout.JAVA_INT.varHandle();

    @ParameterizedTest
    @ValueSource(strings = {"shm", "socket", "ucx"})
    void aLostPeerFailsOnlyItsCommunicator(String network) throws Exception {
        try (GinRanks group = new GinRanks(network, 3)) {
            GinCommunicator[] doomed = group.connect(GinOptions.defaults());
            GinCommunicator[] healthy = group.connect(GinOptions.defaults());
            MemorySegment[] memory = group.memory(64);
            Window[] windows = group.windows(healthy, memory);
            GinDeviceCommunicator[] doomedDevices = group.devices(doomed, GinRequirements.of(2, 1, 0));
            GinDeviceCommunicator[] healthyDevices = group.devices(healthy, GinRequirements.of(1, 1, 0));
            group.run(rank -> {
                HostGin gin = new HostGin(doomedDevices[rank], 1);
                if (rank == 1) {
                    GinBarrier.world(gin, 0).sync();
                    doomed[1].fail(new GinException("rank 1 was killed by the test"));
                } else {
                    GinException waiting = assertThrows(GinException.class, () -> {
                        GinBarrier.world(gin, 0).sync(); // sync or waitSignal throws because rank 1 is lost
                        gin.waitSignal(0, 1);
                    });
                    // One of the ranks 0 and 2 detects the loss of rank 1, and fails. The other rank may detect this
                    // failure before it detects the loss of rank 1.
                    assertTrue(
                            waiting.getMessage()
                                    .matches("(?s)rank " + rank + ": the communicator has failed.*lost rank [02 1].*"),
                            waiting.getMessage());
                    while ((int) FLAG.getVolatile(doomed[rank].errorFlag(), 0L) != 1) {
                        Thread.onSpinWait(); // the flag is set only after the failure is visible
                    }
                }
            });
            String first = doomed[0].failure().getMessage() + doomed[2].failure().getMessage();
            assertTrue(first.contains("lost rank 1"), first);
            assertTrue(first.contains("nothing was in flight to it") || first.contains("context 1, descriptor"), first);
            assertThrows(GinException.class, () -> doomed[0].register(windows[0].memory()));
            group.run(rank -> {
                HostGin gin = new HostGin(healthyDevices[rank], 0);
                gin.putValue(healthyDevices[rank].world(), (rank + 1) % 3, windows[rank], 8, rank, 8,
                        RemoteAction.increment(0));
                gin.waitSignal(0, 1);
                assertEquals((rank + 2) % 3, memory[rank].get(ValueLayout.JAVA_LONG, 8));
                assertNull(healthy[rank].failure());
            });
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"shm", "socket", "ucx"})
    void aPeerThatLeftIsReportedToRanksThatUseIt(String network) throws Exception {
        try (GinRanks group = new GinRanks(network, 2)) {
            GinCommunicator[] communicators = group.connect(GinOptions.defaults());
            GinDeviceCommunicator[] devices = group.devices(communicators, GinRequirements.of(1, 1, 0));
            HostGin gin = new HostGin(devices[0], 0);
            HostGin last = new HostGin(devices[1], 0);
            last.signal(devices[1].world(), 0, RemoteAction.add(0, 42));
            assertTrue(group.agents[1].remove(communicators[1], Duration.ofSeconds(20)),
                    "what was under way was sent first");
            gin.waitSignal(0, 42);
            gin.signal(devices[0].world(), 0, RemoteAction.increment(0));
            gin.waitSignal(0, 43);
            assertNull(communicators[0].failure(), "nothing was wanted of the rank that left");
            GinException missed = assertThrows(GinException.class, () -> {
                while (true) { // this call fails only after rank 0 has read rank 1's shutdown message
                    gin.signal(devices[0].world(), 1, RemoteAction.increment(0));
                    gin.flush();
                }
            });
            assertTrue(
                    missed.getMessage()
                            .contains("rank 0: rank 1 has closed its end; "
                                    + "the oldest descriptor in flight to it: context 0, descriptor"),
                    missed.getMessage());
        }
    }

    @Test
    void anInvalidDescriptorIsNamed() throws Exception {
        try (GinRanks group = new GinRanks("shm", 2)) {
            GinCommunicator[] communicators = group.connect(GinOptions.defaults());
            MemorySegment[] memory = group.memory(64);
            Window[] windows = group.windows(communicators, memory);
            GinDeviceCommunicator[] devices =
                    group.devices(communicators, GinRequirements.of(2, 1, 0).withQueues(4, 7));
            HostGin gin = new HostGin(devices[0], 1);
            gin.put(devices[0].world(), 1, windows[0], 0, windows[0], 60, 8);
            GinException refused = assertThrows(GinException.class, gin::flush);
            assertTrue(refused.getMessage()
                    .contains("rank 0 -> rank 1, context 1, descriptor 7 "
                            + "(put of 8 bytes to window 1 at 0 from window 1 at 60): "
                            + "8 bytes at 60 are not within window 1 of 64 bytes"),
                    refused.getMessage());
        }
    }

    @Test
    void aWaitEndsAtItsDeadlineAndNamesTheAwaitedEvent() throws Exception {
        try (GinRanks group = new GinRanks("shm", 2)) {
            GinCommunicator[] communicators = group.connect(GinOptions.defaults());
            GinDeviceCommunicator[] devices =
                    group.devices(communicators, GinRequirements.of(1, 1, 1).withDeadline(Duration.ofMillis(50)));
            HostGin gin = new HostGin(devices[0], 0);
            assertEquals("rank 0, context 0 waited 50 ms for signal 0 to reach 7; it is 0",
                    assertThrows(GinException.class, () -> gin.waitSignal(0, 7)).getMessage());
            assertEquals("rank 0, context 0 waited 50 ms for counter 0 to reach 1; it is 0",
                    assertThrows(GinException.class, () -> gin.waitCounter(0, 1)).getMessage());
            assertFalse(HostGin.reached(-1, 0, 64));
            assertTrue(HostGin.reached(0x1_0000_0001L, 0xFFFF_FFFEL, 32), "low bits wrap");
        }
    }
}
