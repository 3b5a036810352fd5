package org.millrace.net.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.ffi.plugin.plugin_h;
import org.millrace.net.Connected;
import org.millrace.net.FrameHeader;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.RandomFrames;
import org.millrace.net.plugin.TestNet.Count;

/**
 * Frames as messages of every version of the table, in receives of one buffer and of several, in all kinds of memory.
 */
@Timeout(60)
class PluginMessagesTest {

    private static final int SLOTS = 24;
    private static final int SLOT_BYTES = (1 << 20) + 128;

    private TestNet plugin = TestNet.version(12);

    @AfterEach
    void nothingToComplainOf() {
        assertEquals(0, plugin.count(Count.COMPLAINTS));
    }

    @ParameterizedTest
    @CsvSource({"8, 1, 16384", "9, 4, 0", "10, 8, 300", "11, 2, 16384", "12, 8, 0", "12, 1, 1000000"})
    void everyVersionCarriesRandomFrames(int version, int recvs, int inline) {
        plugin = TestNet.version(version).with("recvs=" + recvs);
        try (Network network = plugin.open(PluginOptions.defaults().withMessages(inline, 100_000));
                Arena arena = Arena.ofShared();
                MemoryRegion out = network.register(arena.allocate((long) SLOTS * SLOT_BYTES, 64));
                MemoryRegion in = network.register(arena.allocate((long) SLOTS * SLOT_BYTES, 64));
                Connected ends = Connected.make(network, network)) {
            var sending = new RandomFrames.Sending(ends.sender(), out, SLOTS, version, 1000);
            var receiving = new RandomFrames.Receiving(ends.receiver(), in, SLOTS, version, 1000);
            boolean sent = false;
            boolean received = false;
            while (!sent || !received) {
                sent = sending.step();
                received = receiving.step();
            }
        }
        assertEquals(recvs > 1, plugin.count(Count.GROUPS) > 0);
        assertEquals(0, plugin.count(Count.FLUSHES));
    }

    @Test
    void payloadsThatWaitTogetherAreReceivedTogether() {
        plugin.with("recvs=4");
        try (Network network = plugin.open();
                Arena arena = Arena.ofShared();
                MemoryRegion memory = network.register(arena.allocate(1 << 20));
                Connected ends = Connected.make(network, network)) {
            for (int i = 0; i < 6; i++) {
                ends.sender().offer(header(20_000 + i), memory, 0);
            }
            for (int i = 0; i < 6; i++) {
                while (ends.receiver().poll() == null) {
                    ends.sender().progress();
                }
                ends.receiver().accept(memory, 200_000L + i * 30_000);
            }
            ends.until(() -> ends.receiver().framesCompleted() == 6 && ends.sender().framesCompleted() == 6);
        }
        assertEquals(2, plugin.count(Count.GROUPS)); // of four, and of the two that were left
    }

    private static FrameHeader header(long bytes) {
        FrameHeader header = new FrameHeader();
        header.payloadBytes(bytes);
        return header;
    }

    /** The plugin shows what came there only when it is told to. */
    @ParameterizedTest
    @ValueSource(ints = {1, 3})
    void memoryOfADeviceIsFlushedBeforeAFrameIsCounted(int recvs) {
        plugin.with("recvs=" + recvs);
        try (PluginNetwork network = plugin.open(PluginOptions.defaults().withMessages(0, 40_000));
                Arena arena = Arena.ofShared();
                MemoryRegion out = network.register(arena.allocate(1 << 20));
                MemoryRegion device = network.register(arena.allocate(1 << 20), plugin_h.NCCL_PTR_CUDA());
                Connected ends = Connected.make(network, network)) {
            for (int i = 0; i < 1 << 20; i += 4) {
                out.segment().set(ValueLayout.JAVA_INT, i, i * 31);
            }
            for (int i = 0; i < 8; i++) {
                ends.sender().offer(header(100_000), out, i * 100_000L);
            }
            for (int frame = 0; frame < 8; frame++) {
                ends.nextHeader();
                ends.receiver().accept(device, frame * 100_000L);
                long seen = ends.receiver().framesCompleted();
                assertEquals(-1,
                        MemorySegment.mismatch(out.segment(), 0, seen * 100_000, device.segment(), 0, seen * 100_000),
                        "a frame is counted that cannot be seen yet");
            }
            ends.until(() -> ends.receiver().framesCompleted() == 8);
            assertEquals(-1, MemorySegment.mismatch(out.segment(), 0, 800_000, device.segment(), 0, 800_000));
        }
        assertTrue(plugin.count(Count.FLUSHES) >= 24 / recvs, plugin.count(Count.FLUSHES) + " flushes");
    }

    @Test
    void whatCameWithItsHeaderDoesNotGoToADevice() {
        plugin.with("");
        try (PluginNetwork network = plugin.open();
                Arena arena = Arena.ofShared();
                MemoryRegion out = network.register(arena.allocate(100));
                MemoryRegion device = network.register(arena.allocate(100), plugin_h.NCCL_PTR_CUDA());
                Connected ends = Connected.make(network, network)) {
            ends.sender().offer(header(100), out, 0);
            ends.nextHeader();
            assertThrows(IllegalArgumentException.class, () -> ends.receiver().accept(device, 0));
            ends.sender().offer(header(100), device, 0);
            ends.receiver().accept(out, 0);
            ends.nextHeader();
            ends.receiver().accept(device, 0);
            ends.until(() -> ends.receiver().framesCompleted() == 2);
        }
    }

    /** Memory is registered when it is first used with a communicator, and given back with it or before. */
    @Test
    void memoryIsRegisteredOnceForEachConnection() {
        plugin.with("");
        long before = plugin.count(Count.REGISTERED);
        try (Network network = plugin.open(PluginOptions.defaults().withMessages(0, 1000));
                Arena arena = Arena.ofShared();
                Connected a = Connected.make(network, network);
                Connected b = Connected.make(network, network)) {
            MemoryRegion first = network.register(arena.allocate(100));
            MemoryRegion second = network.register(arena.allocate(100));
            for (Connected connection : new Connected[] {a, b}) { // both ends then know their own memory
                connection.sender().offer(header(0), null, 0);
                connection.nextHeader();
                connection.receiver().accept(null, 0);
                connection.until(() -> connection.sender().framesCompleted() == 1);
            }
            long ends = plugin.count(Count.REGISTERED);
            for (int i = 2; i <= 4; i++) {
                int done = i;
                a.sender().offer(header(100), first, 0);
                a.nextHeader();
                a.receiver().accept(first, 0);
                a.until(() -> a.receiver().framesCompleted() == done && a.sender().framesCompleted() == done);
            }
            assertEquals(ends + 2, plugin.count(Count.REGISTERED));
            b.sender().offer(header(100), first, 0);
            b.nextHeader();
            b.receiver().accept(second, 0);
            b.until(() -> b.receiver().framesCompleted() == 2 && b.sender().framesCompleted() == 2);
            assertEquals(ends + 4, plugin.count(Count.REGISTERED));
            first.close();
            assertEquals(ends + 1, plugin.count(Count.REGISTERED));
            MemoryRegion third = network.register(arena.allocate(100)); // with the first one's number
            a.sender().offer(header(100), third, 0);
            a.nextHeader();
            a.receiver().accept(third, 0);
            a.until(() -> a.receiver().framesCompleted() == 5 && a.sender().framesCompleted() == 5);
            assertEquals(ends + 3, plugin.count(Count.REGISTERED));
        }
        assertEquals(before, plugin.count(Count.REGISTERED));
    }
}
