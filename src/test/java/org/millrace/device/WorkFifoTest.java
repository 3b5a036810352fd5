package org.millrace.device;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.abi.kernel.WorkFifoCounters;

/** The FIFO of work items. Items stay unchanged at their positions until their room is freed, also after wraps. */
class WorkFifoTest {

    private static final int BYTES = 512;

    private record Put(int position, int length, long seed) {
    }

    @ParameterizedTest
    @ValueSource(ints = {0, Integer.MAX_VALUE - 15 - 1024, Integer.MIN_VALUE, -1024, -16})
    void itemsStayUntilTheyAreConsumed(int first) {
        long seed = 7 + first;
        Random random = new Random(seed);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment ring = arena.allocate(BYTES, 16);
            WorkFifoCounters counters =
                    WorkFifoCounters.of(arena.allocate(WorkFifoCounters.BYTES, WorkFifoCounters.ALIGNMENT));
            WorkFifo fifo = new WorkFifo(ring, counters, first & -16);
            Queue<Put> inside = new ArrayDeque<>();
            long all = 0;
            int fulls = 0;
            while (all < 10 * BYTES + 4096) {
                int length = 16 * (1 + random.nextInt(12));
                if (fifo.hasRoom(length)) {
                    long content = random.nextLong();
                    inside.add(new Put(fifo.put(items(length, content)), length, content));
                    all += length;
                } else {
                    fulls++;
                    Put oldest = inside.remove();
                    assertContent(ring, oldest, seed);
                    fifo.consume(oldest.position + oldest.length);
                }
                assertEquals(inside.stream().mapToInt(Put::length).sum(), fifo.used(), "seed " + seed);
                assertEquals(fifo.produced(), counters.producedAcquire());
            }
            assertTrue(fulls > 10, "the FIFO was never full");
        }
    }

    private static MemorySegment items(int length, long seed) {
        long[] words = new Random(seed).longs(length / 8).toArray();
        return MemorySegment.ofArray(words);
    }

    private static void assertContent(MemorySegment ring, Put put, long seed) {
        MemorySegment expected = items(put.length, put.seed);
        for (int at = 0; at < put.length; at += 8) {
            long offset = put.position + at & BYTES - 1;
            assertEquals(expected.get(ValueLayout.JAVA_LONG, at), ring.get(ValueLayout.JAVA_LONG, offset),
                    "seed " + seed + ", byte " + at + " of " + put);
        }
    }

    @Test
    void refusesItemsWithoutRoom() {
        try (Arena arena = Arena.ofConfined()) {
            WorkFifoCounters counters =
                    WorkFifoCounters.of(arena.allocate(WorkFifoCounters.BYTES, WorkFifoCounters.ALIGNMENT));
            WorkFifo fifo = new WorkFifo(arena.allocate(64, 16), counters, -32);
            int position = fifo.put(items(64, 1));
            assertFalse(fifo.hasRoom(16));
            assertThrows(IllegalStateException.class, () -> fifo.put(items(16, 2)));
            assertThrows(IllegalArgumentException.class, () -> fifo.consume(position + 80));
            assertThrows(IllegalArgumentException.class, () -> fifo.consume(position - 16));
            fifo.consume(position + 64);
            assertTrue(fifo.hasRoom(64));
            assertThrows(IllegalArgumentException.class, () -> new WorkFifo(arena.allocate(96, 16), counters, 0));
        }
    }
}
