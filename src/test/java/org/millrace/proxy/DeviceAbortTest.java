package org.millrace.proxy;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.RecvMem;
import org.millrace.proxy.AbstractProxy.DeviceAbortedException;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.Steps;

/**
 * A kernel of an aborted communicator completes its operation without waiting for credits. The proxy must not send the
 * steps that the kernel posts after the abort.
 */
class DeviceAbortTest {

    private static final ConnectionLayout LAYOUT = new ConnectionLayout(8 * 256, 8 * 2048, 8 * 1024);
    private static final int PASSES = 100;

    private final Arena arena = Arena.ofConfined();
    private final MemorySegment memory = arena.allocate(LAYOUT.totalBytes(), 4096);
    private final RecvMem recvMem = LAYOUT.recvMem(memory);
    private final MemoryFrames frames = new MemoryFrames(null);

    @AfterEach
    void close() {
        arena.close();
    }

    private SendProxy proxy(long firstStep) {
        LAYOUT.sendMem(memory).headRelease(firstStep);
        recvMem.tailRelease(firstStep);
        for (int slot = 0; slot < ConnectionLayout.SLOTS; slot++) {
            recvMem.sizePlain(slot, RecvMem.EMPTY);
        }
        return SendProxy.byMemory(ConnectionName.ofRing(0, 1, 0, true),
                SlotBuffers.inOne(LAYOUT, MemoryFrames.region(memory)), firstStep, frames.sender(), (c, f) -> {});
    }

    private void post(long step) {
        recvMem.sizePlain(ConnectionLayout.slot(step), 8);
        recvMem.tailRelease(step + 1);
    }

    @ParameterizedTest
    @ValueSource(longs = {0, 4294967280L, Long.MAX_VALUE - 3})
    void allCreditsMayBeUsed(long firstStep) {
        SendProxy proxy = proxy(firstStep);
        for (int step = 0; step < ConnectionLayout.SLOTS; step++) {
            post(firstStep + step);
        }
        proxy.progress();
        assertEquals(ConnectionLayout.SLOTS, frames.offered());
        assertDoesNotThrow(proxy::drained);
    }

    @ParameterizedTest
    @ValueSource(longs = {0, 4294967280L, Long.MAX_VALUE - 3})
    void aStepWithoutCreditIsNotSent(long firstStep) {
        SendProxy proxy = proxy(firstStep);
        for (int step = 0; step <= ConnectionLayout.SLOTS; step++) {
            post(firstStep + step);
        }
        DeviceAbortedException thrown = assertThrows(DeviceAbortedException.class, proxy::progress);
        assertEquals(0, frames.offered());
        assertTrue(thrown.getMessage().contains("rank 0 -> rank 1, channel 0: the device ran on without credits"),
                thrown.getMessage());
    }

    /**
     * While all slots are in flight, progress() does not read tail. In this state drained() detects the abort.
     * Otherwise, a teardown would wait for data that is never sent.
     */
    @Test
    void itIsNoticedWithAllFramesOnTheirWay() {
        SendProxy proxy = proxy(0);
        for (int step = 0; step < ConnectionLayout.SLOTS; step++) {
            post(step);
        }
        for (int pass = 0; pass < PASSES; pass++) {
            proxy.progress();
        }
        post(ConnectionLayout.SLOTS);
        assertThrows(DeviceAbortedException.class, proxy::drained);
    }
}
