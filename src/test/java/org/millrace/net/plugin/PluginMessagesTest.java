package org.millrace.net.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.function.IntUnaryOperator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.net.Connected;
import org.millrace.net.DeviceRegion;
import org.millrace.net.FrameHeader;
import org.millrace.net.HostDevice;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.RandomFrames;
import org.millrace.net.TestOptions;
import org.millrace.net.Warnings;
import org.millrace.net.plugin.TestNet.Count;

/**
 * Frames that travel as messages of a plugin, tested for every version of the plugin's table. Receives have one buffer
 * or several, in host memory and in device memory.
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
        try (Network network = plugin.open(TestOptions.messages(inline, 100_000));
                Arena arena = Arena.ofShared();
                MemoryRegion out = network.register(arena.allocate((long) SLOTS * SLOT_BYTES, 64));
                MemoryRegion in = network.register(arena.allocate((long) SLOTS * SLOT_BYTES, 64));
                Connected ends = Connected.make(network, network)) {
            var sending = new RandomFrames.Sending(ends.sender(), out, SLOTS, version, 1000);
            var receiving = new RandomFrames.Receiving(ends.receiver(), in, SLOTS, version, 1000);
            RandomFrames.exchange(sending, receiving);
        }
        assertEquals(recvs > 1, plugin.count(Count.GROUPS) > 0);
        assertEquals(0, plugin.count(Count.FLUSHES));
    }

    @Test
    void payloadsThatWaitTogetherAreReceivedTogether() {
        assertEquals(2, groupsOfSix(8)); // one receive of four buffers (the maximum), and one of two buffers
        assertEquals(3, groupsOfSix(2)); // with NCCL_NET_MAX_RECVS=2, three receives of two buffers
        assertEquals(0, groupsOfSix(1));
    }

    /** Sends six payloads, and returns the number of receives that had more than one buffer. */
    private long groupsOfSix(int maxRecvs) {
        plugin.with("recvs=4");
        long before = plugin.count(Count.GROUPS);
        try (Network network = plugin.open(PluginOptions.defaults().withDevices(List.of(), maxRecvs));
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
        return plugin.count(Count.GROUPS) - before;
    }

    private static FrameHeader header(long bytes) {
        FrameHeader header = new FrameHeader();
        header.payloadBytes(bytes);
        return header;
    }

    /** Memory that the plugin treats as GPU memory. Received data is visible after a flush. */
    private static final class FakeDevice extends HostDevice {

        private final int descriptor;

        FakeDevice(MemorySegment memory, int descriptor) {
            super(memory, null);
            this.descriptor = descriptor;
        }

        @Override
        public int lendDmaBuf(IntUnaryOperator use) {
            return descriptor < 0 ? -1 : use.applyAsInt(descriptor);
        }
    }

    @ParameterizedTest
    @CsvSource({"1, -1, ''", "3, -1, ',late=2,unordered'", "3, 1, ',dmabuf'", "1, -1, ',dmabuf'", "1, 999, ',dmabuf'"})
    void memoryOfADeviceIsFlushedBeforeAFrameIsCounted(int recvs, int descriptor, String words) {
        plugin.with("recvs=" + recvs + words);
        try (PluginNetwork network = plugin.open(TestOptions.messages(16384, 40_000));
                Arena arena = Arena.ofShared();
                DeviceRegion out = new FakeDevice(arena.allocate(1 << 20, 8), descriptor);
                DeviceRegion in = new FakeDevice(arena.allocate(1 << 20, 8), descriptor);
                Connected ends = Connected.make(network, network)) {
            assertTrue(ends.sender().sendsFrom(out));
            for (int i = 0; i < 1 << 20; i += 4) {
                out.segment().set(ValueLayout.JAVA_INT, i, i * 31);
            }
            long begin = 0;
            int[] lengths = {100_000, 100, 40_000, 16384, 40_001, 1, 200_000, 64};
            for (int length : lengths) {
                ends.sender().offer(header(length), out, begin);
                begin += length;
            }
            long to = 0;
            long seen = 0;
            int frames = 0;
            for (int length : lengths) {
                ends.nextHeader();
                assertTrue(ends.receiver().isOnDevice());
                ends.receiver().accept(in, to);
                to += length;
                for (; frames < ends.receiver().framesCompleted(); frames++) {
                    seen += lengths[frames];
                }
                assertEquals(-1, MemorySegment.mismatch(out.segment(), 0, seen, in.segment(), 0, seen),
                        "a frame is counted that cannot be seen yet");
            }
            ends.until(() -> ends.receiver().framesCompleted() == lengths.length);
            assertEquals(-1, MemorySegment.mismatch(out.segment(), 0, to, in.segment(), 0, to));
            ends.sender().offer(header(0), null, 0);
            ends.nextHeader();
            assertFalse(ends.receiver().isOnDevice());
            ends.receiver().accept(null, 0);
        }
        assertTrue(plugin.count(Count.FLUSHES) > 0);
        assertEquals(descriptor == 1 ? 2 : 0, plugin.count(Count.DMA_BUFS));
        if (descriptor == 999) {
            // The plugin has refused both descriptors. The two regions were then registered without their descriptors.
            assertEquals(2, plugin.count(Count.COMPLAINTS));
            plugin.with("");
        }
    }

    @ParameterizedTest
    // the second registration fails; the first registers the receiver's own memory
    @ValueSource(strings = {"nocuda", "fail=regMr:2:1"})
    void memoryOfADeviceThatThePluginDoesNotTakeIsLeftToStaging(String words) {
        plugin.with(words);
        try (Warnings warnings = new Warnings(PluginNetwork.class.getPackageName());
                PluginNetwork network = plugin.open();
                Arena arena = Arena.ofShared();
                DeviceRegion device = new FakeDevice(arena.allocate(100), -1);
                Connected ends = Connected.make(network, network)) {
            assertFalse(ends.sender().sendsFrom(device));
            assertFalse(ends.sender().sendsFrom(device));
            if (words.startsWith("fail")) {
                assertTrue(warnings.await("not sent as it is").contains("regMr failed: ncclUnhandledCudaError (1)"));
            }
        }
    }

    @Test
    void whatCameWithItsHeaderDoesNotGoToADevice() {
        plugin.with("");
        try (PluginNetwork network = plugin.open();
                Arena arena = Arena.ofShared();
                MemoryRegion host = network.register(arena.allocate(100));
                DeviceRegion device = new FakeDevice(arena.allocate(100), -1);
                Connected ends = Connected.make(network, network)) {
            ends.sender().offer(header(100), host, 0);
            ends.nextHeader();
            assertFalse(ends.receiver().isOnDevice());
            assertThrows(IllegalArgumentException.class, () -> ends.receiver().accept(device, 0));
            ends.receiver().accept(host, 0);
            ends.sender().offer(header(100), device, 0);
            ends.nextHeader();
            ends.receiver().accept(host, 0);
            ends.until(() -> ends.receiver().framesCompleted() == 2);
            assertThrows(IndexOutOfBoundsException.class, () -> ends.sender().offer(header(100), device, 1));
        }
    }

    /**
     * Memory is registered at its first use with a communicator. It stays registered until the memory or the
     * communicator is closed.
     */
    @Test
    void memoryIsRegisteredOnceForEachConnection() {
        plugin.with("");
        long before = plugin.count(Count.REGISTERED);
        try (Network network = plugin.open(TestOptions.messages(0, 1000));
                Arena arena = Arena.ofShared();
                Connected a = Connected.make(network, network);
                Connected b = Connected.make(network, network)) {
            MemoryRegion first = network.register(arena.allocate(100));
            MemoryRegion second = network.register(arena.allocate(100));
            // the first frame of a connection makes each end register its own memory
            for (Connected connection : new Connected[] {a, b}) {
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
            // the third region reuses the number of the first region
            MemoryRegion third = network.register(arena.allocate(100));
            a.sender().offer(header(100), third, 0);
            a.nextHeader();
            a.receiver().accept(third, 0);
            a.until(() -> a.receiver().framesCompleted() == 5 && a.sender().framesCompleted() == 5);
            assertEquals(ends + 3, plugin.count(Count.REGISTERED));
        }
        assertEquals(before, plugin.count(Count.REGISTERED));
    }
}
