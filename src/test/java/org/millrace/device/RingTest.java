package org.millrace.device;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.abi.Protocol;
import org.millrace.net.connection.NativeRegion;

/**
 * Whole rings in one thread. Checks each algorithm's result on every rank, with counters that wrap. A rank's elements
 * fit into one chunk or need several.
 */
class RingTest {

    private static final String CASES = """
            2, 1, 0
            2, 1000, 0
            2, 9999, 0
            3, 1, 0
            3, 7, 0
            3, 1001, 0
            4, 4096, 0
            5, 2345, 0
            8, 1, 0
            8, 3191, 0
            2, 9999, 2147483640
            3, 5000, 2147483642
            2, 9999, 4294967288
            4, 5000, 4294967290
            3, 5000, 9223372036854775800
            2, 5000, -16
            """;

    private int ranks;
    private int count;
    private Protocol protocol;
    private Pump pump;
    private Arena arena;

    private interface Body {
        void run(Random random);
    }

    private void run(int rankCount, int elements, long firstStep, Body body) {
        ranks = rankCount;
        count = elements;
        Random random = new Random(31L * rankCount + elements);
        try (Arena memory = Arena.ofConfined()) {
            arena = memory;
            pump = new Pump(memory, firstStep, random);
            for (int operation = 0; operation < 5; operation++) {
                pump.nextOperation();
                // Operations of all protocols run on the same connections, one after another.
                protocol = Protocol.of(random.nextInt(3));
                body.run(random);
            }
        }
    }

    private static long value(int rank, long index) {
        return (rank + 1) * 0x9E3779B97F4A7C15L + index * 31L;
    }

    private long sum(long index) {
        long sum = 0;
        for (int rank = 0; rank < ranks; rank++) {
            sum += value(rank, index);
        }
        return sum;
    }

    private MemorySegment filled(int rank, long elements) {
        MemorySegment memory = arena.allocate(8 * elements, 64);
        for (long i = 0; i < elements; i++) {
            memory.setAtIndex(ValueLayout.JAVA_LONG, i, value(rank, i));
        }
        return memory;
    }

    private MemorySegment[] each(java.util.function.IntFunction<MemorySegment> make) {
        MemorySegment[] all = new MemorySegment[ranks];
        for (int rank = 0; rank < ranks; rank++) {
            all[rank] = make.apply(rank);
        }
        return all;
    }

    private static BlockMemory sums(MemorySegment input, MemorySegment output) {
        return BlockMemory.reduced(input, output, DataType.INT64, ReduceOp.SUM, 1);
    }

    private ChunkShape shape(ChunkShape simple) {
        return simple.in(protocol);
    }

    private ChannelPart share(int parts, ChunkShape shape) {
        return ChannelPart.of(0, count, 8, shape.chunkBytes(Pump.LAYOUT));
    }

    private List<Integer> previous(int rank) {
        return List.of((rank + ranks - 1) % ranks);
    }

    private List<Integer> next(int rank) {
        return List.of((rank + 1) % ranks);
    }

    private static void check(String what, long expected, MemorySegment memory, long index) {
        assertEquals(expected, memory.getAtIndex(ValueLayout.JAVA_LONG, index), () -> what + ", element " + index);
    }

    @ParameterizedTest
    @CsvSource(textBlock = CASES)
    void allReduceStoresTheSumOnEveryRank(int rankCount, int elements, long firstStep) {
        run(rankCount, elements, firstStep, random -> {
            MemorySegment[] input = each(rank -> filled(rank, count));
            boolean inPlace = random.nextBoolean();
            MemorySegment[] output = inPlace ? input : each(_ -> arena.allocate(8L * count, 64));
            for (int rank = 0; rank < ranks; rank++) {
                pump.add(rank,
                        RingFunction.RingAllReduce.schedule(share(ranks, shape(ChunkShape.FOUR_SLICES)), rank, ranks),
                        sums(input[rank], output[rank]), shape(ChunkShape.FOUR_SLICES), previous(rank), next(rank));
            }
            pump.run();
            for (int rank = 0; rank < ranks; rank++) {
                for (int i = 0; i < count; i++) {
                    check("rank " + rank, sum(i), output[rank], i);
                }
            }
        });
    }

    /**
     * Some ranks send from the user's memory, and others from slots. An average scales elements before they are sent.
     */
    @ParameterizedTest
    @CsvSource(textBlock = CASES)
    void allReduceInTheUsersMemoryStoresTheSameSum(int rankCount, int elements, long firstStep) {
        run(rankCount, elements, firstStep, random -> {
            MemorySegment[] input = each(rank -> filled(rank, count));
            boolean inPlace = random.nextBoolean();
            boolean scaled = random.nextBoolean();
            MemorySegment[] output = inPlace ? input : each(_ -> arena.allocate(8L * count, 64));
            long chunkBytes = ChunkShape.FOUR_SLICES.chunkBytes(Pump.LAYOUT);
            for (int rank = 0; rank < ranks; rank++) {
                boolean user = random.nextInt(3) > 0;
                BlockMemory memory = BlockMemory.reduced(input[rank], output[rank], DataType.INT64,
                        scaled ? new ReduceOp.PreMulSum(3) : ReduceOp.SUM, 1);
                pump.add(rank,
                        RingFunction.RingAllReduce.schedule(ChannelPart.of(0, count, 8, chunkBytes), rank, ranks),
                        memory, user ? ChunkShape.FOUR_SLICES.inUserMemory(chunkBytes) : ChunkShape.FOUR_SLICES,
                        previous(rank), next(rank), user ? NativeRegion.ALL_MEMORY : null);
            }
            pump.run();
            for (int rank = 0; rank < ranks; rank++) {
                for (int i = 0; i < count; i++) {
                    check("rank " + rank, sum(i) * (scaled ? 3 : 1), output[rank], i);
                }
            }
        });
    }

    @ParameterizedTest
    @CsvSource(textBlock = CASES)
    void allGatherStoresAllElementsOnEveryRank(int rankCount, int elements, long firstStep) {
        run(rankCount, elements, firstStep, random -> {
            boolean inPlace = random.nextBoolean();
            MemorySegment[] output = each(_ -> arena.allocate(8L * count * ranks, 64));
            for (int rank = 0; rank < ranks; rank++) {
                MemorySegment mine = filled(rank, count);
                MemorySegment own = output[rank].asSlice(8L * count * rank, 8L * count);
                pump.add(rank,
                        RingFunction.RingAllGather.schedule(share(1, shape(ChunkShape.FOUR_SLICES)),
                                Pump.ring(arena, rank, ranks), ranks, count, inPlace),
                        sums(inPlace ? own.copyFrom(mine) : mine, output[rank]), shape(ChunkShape.FOUR_SLICES),
                        previous(rank), next(rank));
            }
            pump.run();
            for (int rank = 0; rank < ranks; rank++) {
                for (int i = 0; i < ranks * count; i++) {
                    check("rank " + rank, value(i / count, i % count), output[rank], i);
                }
            }
        });
    }

    @ParameterizedTest
    @CsvSource(textBlock = CASES)
    void reduceScatterStoresEachRanksShareOfTheSum(int rankCount, int elements, long firstStep) {
        run(rankCount, elements, firstStep, random -> {
            boolean inPlace = random.nextBoolean();
            MemorySegment[] input = each(rank -> filled(rank, (long) count * ranks));
            MemorySegment[] output = each(rank -> inPlace ? input[rank].asSlice(8L * count * rank, 8L * count)
                    : arena.allocate(8L * count, 64));
            for (int rank = 0; rank < ranks; rank++) {
                pump.add(rank,
                        RingFunction.RingReduceScatter.schedule(share(1, shape(ChunkShape.FOUR_SLICES)),
                                Pump.ring(arena, rank, ranks), ranks, count),
                        sums(input[rank], output[rank]), shape(ChunkShape.FOUR_SLICES), previous(rank), next(rank));
            }
            pump.run();
            for (int rank = 0; rank < ranks; rank++) {
                for (int i = 0; i < count; i++) {
                    check("rank " + rank, sum((long) rank * count + i), output[rank], i);
                }
            }
        });
    }

    @ParameterizedTest
    @CsvSource(textBlock = CASES)
    void broadcastAndReduceFollowEachOtherOnTheSameRing(int rankCount, int elements, long firstStep) {
        run(rankCount, elements, firstStep, random -> {
            int root = random.nextInt(ranks);
            MemorySegment[] spread = each(rank -> rank == root ? filled(rank, count) : arena.allocate(8L * count, 64));
            MemorySegment[] input = each(rank -> filled(rank, count));
            MemorySegment sum = arena.allocate(8L * count, 64);
            ChannelPart share = share(1, shape(ChunkShape.ONE_STEP));
            for (int rank = 0; rank < ranks; rank++) {
                boolean sends = (rank + 1) % ranks != root;
                boolean first = rank == root;
                pump.add(rank, ChunkSchedule.spread(share, first, !first, sends), sums(spread[rank], spread[rank]),
                        shape(ChunkShape.ONE_STEP), first ? List.of() : previous(rank), sends ? next(rank) : List.of());
            }
            pump.nextOperation();
            for (int rank = 0; rank < ranks; rank++) {
                boolean receives = rank != (root + 1) % ranks;
                boolean last = rank == root;
                pump.add(rank, ChunkSchedule.combine(share, receives, last, !last), sums(input[rank], sum),
                        shape(ChunkShape.ONE_STEP), receives ? previous(rank) : List.of(),
                        last ? List.of() : next(rank));
            }
            pump.run();
            for (int i = 0; i < count; i++) {
                for (int rank = 0; rank < ranks; rank++) {
                    check("broadcast from " + root + ", rank " + rank, value(root, i), spread[rank], i);
                }
                check("reduce to " + root, sum(i), sum, i);
            }
        });
    }
}
