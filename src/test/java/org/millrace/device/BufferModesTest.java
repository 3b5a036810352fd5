package org.millrace.device;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.abi.Protocol;

/**
 * Transfers with shared slots (OFFSET) or without slots (PTR), alternating with transfers of other protocols over the
 * same connections. The counters wrap.
 */
@Tag("slow")
class BufferModesTest {

    private static final String CASES = """
            2, 1, 0
            3, 1000, 0
            5, 3000, 0
            9, 700, 0
            3, 5000, 2147483643
            3, 5000, 4294967291
            3, 5000, 9223372036854775803
            3, 5000, -13
            """;

    private static long value(int operation, int from, int to, long index) {
        return ((operation * 31L + from) * 31 + to) * 0x9E3779B97F4A7C15L + index;
    }

    private static MemorySegment[] filled(Arena arena, int operation, int from, int ranks, int count) {
        MemorySegment[] memory = new MemorySegment[ranks];
        for (int to = 0; to < ranks; to++) {
            memory[to] = arena.allocate(8L * count, 64);
            for (int i = 0; i < count; i++) {
                memory[to].setAtIndex(ValueLayout.JAVA_LONG, i, value(operation, from, to, i));
            }
        }
        return memory;
    }

    /** Sends from every rank to every other rank, all at the same time. */
    private static void allToAll(Pump pump, Arena arena, int ranks, int operation, int count, ChunkShape shape,
            long chunkBytes, boolean userSends, boolean userReceives) {
        MemorySegment[][] output = new MemorySegment[ranks][ranks];
        pump.nextOperation();
        for (int from = 0; from < ranks; from++) {
            MemorySegment[] input = filled(arena, operation, from, ranks, count);
            for (int to = 0; to < ranks; to++) {
                if (to != from) {
                    output[from][to] = arena.allocate(8L * count, 64);
                    ChannelPart share = ChannelPart.of(0, 8L * count, 1, chunkBytes);
                    ChunkShape user = ChunkShape.ONE_STEP.inUserMemory(chunkBytes);
                    pump.add(from, ChunkSchedule.spread(share, true, false, true),
                            BlockMemory.copied(input[to], input[to]), userSends ? user : shape, List.of(), List.of(to),
                            userSends ? input[to] : null);
                    pump.add(to, ChunkSchedule.spread(share, false, true, false),
                            BlockMemory.copied(output[from][to], output[from][to]), userReceives ? user : shape,
                            List.of(from), List.of(), userReceives ? output[from][to] : null);
                }
            }
        }
        pump.run();
        for (int from = 0; from < ranks; from++) {
            for (int to = 0; to < ranks; to++) {
                for (int i = 0; to != from && i < count; i++) {
                    assertEquals(value(operation, from, to, i), output[from][to].getAtIndex(ValueLayout.JAVA_LONG, i),
                            "operation " + operation + ", " + from + " to " + to + ", element " + i);
                }
            }
        }
    }

    @ParameterizedTest
    @CsvSource(textBlock = CASES)
    void sharedSlotsCarryAllProtocolsAndAreFreedAgain(int ranks, int count, long firstStep) {
        Random random = new Random(31L * ranks + count + firstStep);
        try (Arena arena = Arena.ofConfined()) {
            Pump pump = new Pump(arena, firstStep, random, ranks - 1);
            for (int operation = 0; operation < 6; operation++) {
                ChunkShape shape = ChunkShape.ONE_STEP.in(Protocol.of(operation < 2 ? 2 : random.nextInt(3)));
                allToAll(pump, arena, ranks, operation, count, shape, shape.chunkBytes(Pump.LAYOUT), false, false);
                assertEquals(pump.allSlots(), pump.freeSlots(), "all slots are back");
            }
        }
    }

    @ParameterizedTest
    @CsvSource(textBlock = CASES)
    void theUsersMemoryNeedsNoSlotsAtEitherEnd(int ranks, int count, long firstStep) {
        Random random = new Random(17L * ranks + count + firstStep);
        for (int sharing : new int[] {0, ranks - 1}) {
            try (Arena arena = Arena.ofConfined()) {
                Pump pump = new Pump(arena, firstStep, random, sharing);
                for (int operation = 0; operation < 6; operation++) {
                    boolean sends = operation == 0 || random.nextBoolean();
                    boolean receives = operation == 0 || random.nextBoolean();
                    // if at least one end uses slots, a chunk must fit into a slot
                    long chunkBytes = sends && receives ? 1 + random.nextInt(20_000) / 16 * 16 + 15 : Pump.SLOT;
                    allToAll(pump, arena, ranks, operation, count, ChunkShape.ONE_STEP, chunkBytes, sends, receives);
                    assertEquals(pump.allSlots(), pump.freeSlots(), "all slots are back");
                }
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"2, 500, 0", "4, 1500, 4294967292", "5, 300, -9"})
    void anAllGatherPassesOnFromTheUsersMemory(int ranks, int count, long firstStep) {
        Random random = new Random(ranks);
        try (Arena arena = Arena.ofConfined()) {
            Pump pump = new Pump(arena, firstStep, random);
            ChunkShape shape = ChunkShape.ONE_STEP.inUserMemory(4096);
            long perRank = 8L * count;
            MemorySegment[] output = new MemorySegment[ranks];
            for (int operation = 0; operation < 3; operation++) {
                pump.nextOperation();
                for (int rank = 0; rank < ranks; rank++) {
                    output[rank] = arena.allocate(perRank * ranks, 64);
                    MemorySegment own = output[rank].asSlice(rank * perRank, perRank)
                            .copyFrom(filled(arena, operation, rank, 1, count)[0]);
                    pump.add(rank,
                            RingFunction.RingAllGather.schedule(ChannelPart.of(0, perRank, 1, 4096),
                                    Pump.ring(arena, rank, ranks), ranks, perRank, true),
                            BlockMemory.copied(own, output[rank]), shape, List.of((rank + ranks - 1) % ranks),
                            List.of((rank + 1) % ranks), output[rank]);
                }
                pump.run();
                for (int rank = 0; rank < ranks; rank++) {
                    for (int i = 0; i < ranks * count; i++) {
                        assertEquals(value(operation, i / count, 0, i % count),
                                output[rank].getAtIndex(ValueLayout.JAVA_LONG, i), "rank " + rank + ", element " + i);
                    }
                }
            }
        }
    }
}
