package org.millrace.device;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.DirectMemory;
import org.millrace.abi.Protocol;
import org.millrace.proxy.spi.ConnectionName;

/**
 * Two devices that access the same memory. The devices notify each other through head, tail and flags, without a proxy.
 */
class DirectConnectionTest {

    @ParameterizedTest
    @CsvSource({"1, 0", "2, 2147483640", "3, 4294967285", "4, 9223372036854775799", "5, -30"})
    void peersNotifyEachOther(long seed, long firstStep) {
        Random random = new Random(seed);
        try (Arena arena = Arena.ofConfined()) {
            ConnectionInfo both = ConnectionInfo.allocate(arena, Pump.LAYOUT, firstStep);
            DeviceEndpoint<SendPort> sending = new DeviceEndpoint<>("sending");
            DeviceEndpoint<ReceivePort> receiving = new DeviceEndpoint<>("receiving");
            sending.connect(new SendPort(ConnectionName.of("sending"), both));
            receiving.connect(new ReceivePort(ConnectionName.of("receiving"), both));
            for (int operation = 0; operation < 60; operation++) {
                ChunkShape shape = (random.nextBoolean() ? ChunkShape.ONE_STEP : ChunkShape.FOUR_SLICES)
                        .in(Protocol.of(random.nextInt(3)));
                long bytes = random.nextInt(4) == 0 ? 0 : random.nextInt(20_000);
                MemorySegment input = arena.allocate(bytes);
                for (long i = 0; i < bytes; i++) {
                    input.set(ValueLayout.JAVA_BYTE, i, (byte) random.nextInt());
                }
                MemorySegment output = arena.allocate(bytes);
                ChannelPart share = ChannelPart.of(0, bytes, 1, shape.chunkBytes(Pump.LAYOUT));
                Block from = new PrimitiveBlock(ChunkSchedule.spread(share, true, false, true),
                        BlockMemory.copied(input, input), shape, List.of(), List.of(sending));
                Block to = new PrimitiveBlock(ChunkSchedule.spread(share, false, true, false),
                        BlockMemory.copied(output, output), shape, List.of(receiving), List.of());
                for (int turns = 0; !from.done() || !to.done(); turns++) {
                    Block block = random.nextBoolean() ? from : to;
                    if (!block.done()) {
                        block.progress();
                    }
                    assertTrue(turns < 100_000,
                            () -> "stuck: " + from.waitingFor() + "; " + to.waitingFor() + ", seed " + seed);
                }
                assertEquals(-1, input.mismatch(output),
                        "operation " + operation + ", " + shape + ", " + bytes + " bytes, seed " + seed);
            }
        }
    }

    /**
     * The receiver reads the data in the sender's memory, not in a slot. The sender completes only after the receiver
     * has read the data. Operations with and without slots alternate.
     */
    @ParameterizedTest
    @CsvSource({"1, 0", "2, 2147483640", "3, 9223372036854775799"})
    void thePeerReadsTheSendersMemory(long seed, long firstStep) {
        Random random = new Random(seed);
        try (Arena arena = Arena.ofConfined()) {
            ConnectionInfo both = ConnectionInfo.allocate(arena, Pump.LAYOUT, firstStep)
                    .withDirect(DirectMemory.inProcess(arena.allocate(DirectMemory.BYTES, DirectMemory.BYTES),
                            new MemorySegment[ConnectionLayout.SLOTS]));
            MemorySegment slots = both.buffer(Protocol.SIMPLE);
            DeviceEndpoint<SendPort> sending = new DeviceEndpoint<>("sending");
            DeviceEndpoint<ReceivePort> receiving = new DeviceEndpoint<>("receiving");
            sending.connect(new SendPort(ConnectionName.of("sending"), both));
            receiving.connect(new ReceivePort(ConnectionName.of("receiving"), both));
            int read = 0;
            for (int operation = 0; operation < 60; operation++) {
                ChunkShape shape = random.nextBoolean() ? ChunkShape.ONE_STEP : ChunkShape.FOUR_SLICES;
                long bytes = random.nextInt(4) == 0 ? 0 : random.nextInt(20_000);
                MemorySegment input = arena.allocate(bytes);
                for (long i = 0; i < bytes; i++) {
                    input.set(ValueLayout.JAVA_BYTE, i, (byte) (1 + random.nextInt(100)));
                }
                MemorySegment expected = arena.allocate(bytes).copyFrom(input);
                MemorySegment output = arena.allocate(bytes);
                ChannelPart share = ChannelPart.of(0, bytes, 1, shape.chunkBytes(Pump.LAYOUT));
                boolean reads = random.nextInt(3) > 0;
                slots.fill((byte) 0);
                BlockMemory sent = BlockMemory.copied(input, input);
                Block from = new PrimitiveBlock(ChunkSchedule.spread(share, true, false, true),
                        reads ? sent.readByPeers(true, false) : sent, shape, List.of(), List.of(sending));
                Block to = new PrimitiveBlock(ChunkSchedule.spread(share, false, true, false),
                        BlockMemory.copied(output, output), shape, List.of(receiving), List.of());
                for (int turns = 0; !from.done() || !to.done(); turns++) {
                    Block block = random.nextBoolean() ? from : to;
                    if (!block.done()) {
                        block.progress();
                    }
                    if (from.done() && reads) {
                        input.fill((byte) 0); // the sender's program may reuse the memory now
                    }
                    assertTrue(turns < 100_000,
                            () -> "stuck: " + from.waitingFor() + "; " + to.waitingFor() + ", seed " + seed);
                }
                String what = "operation " + operation + ", " + shape + ", " + bytes + " bytes, seed " + seed;
                assertEquals(-1, expected.mismatch(output), what);
                boolean inSlots = slots.mismatch(arena.allocate(slots.byteSize())) >= 0;
                assertEquals(bytes > 0 && !reads, inSlots, what);
                read += reads && bytes > 0 ? 1 : 0;
            }
            assertTrue(read > 10, "only " + read + " operations without slots");
        }
    }
}
