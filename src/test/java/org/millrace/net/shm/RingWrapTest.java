package org.millrace.net.shm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.net.FrameHeader;
import org.millrace.net.MemoryRegion;
import org.millrace.net.TestOptions;

/** Positions that overflow, with payloads that wrap around the end of the ring, and payloads longer than the ring. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("optimized")
class RingWrapTest {

    private static final int RING = 16 << 10;
    private static final int PIECE = 1 << 10;
    /** Odd lengths, so that frames begin at different offsets. */
    private static final int[] LENGTHS =
            {0, 1, 64, 65, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 7, RING - 64, RING, RING + 1, 5 * RING + 13};

    @ParameterizedTest
    @ValueSource(
            longs = {0, (1L << 31) - 3 * RING, (1L << 32) - 3 * RING, Long.MAX_VALUE - 63 - 3 * RING, -64L, -3L * RING,
                    Long.MIN_VALUE})
    void framesPassTheEdge(long first) throws Exception {
        try (Arena arena = Arena.ofConfined(); RingPair ring = RingPair.make(TestOptions.ring(RING, PIECE), first)) {
            MemoryRegion out = ring.register(arena.allocate(8 * RING, 64));
            MemoryRegion in = ring.register(arena.allocate(8 * RING, 64));
            FrameHeader header = new FrameHeader();
            long bytes = 0;
            for (int frame = 0; frame < 20 * LENGTHS.length; frame++) {
                int length = LENGTHS[frame % LENGTHS.length];
                fill(out.segment(), frame);
                in.segment().fill((byte) 0);
                header.payloadBytes(length);
                header.word(5, ~frame);
                assertTrue(ring.sender().offer(header, out, frame % 64));
                fillRing(ring);
                FrameHeader shown = ring.receiver().poll();
                assertEquals(~frame, shown.word(5));
                assertEquals(length, shown.payloadBytes());
                ring.receiver().accept(in, frame % 32);
                while (ring.receiver().framesCompleted() <= frame) {
                    fillRing(ring);
                    ring.receiver().progress();
                }
                assertEquals(frame + 1, ring.sender().framesCompleted());
                assertEquals(-1, MemorySegment.mismatch(out.segment(), frame % 64, frame % 64 + length, in.segment(),
                        frame % 32, frame % 32 + length), "frame " + frame);
                assertEquals(0, in.segment().get(ValueLayout.JAVA_BYTE, frame % 32 + length),
                        "the byte behind frame " + frame + " was written");
                bytes += FrameLayout.HEADER_BYTES + RingLayout.align(length);
            }
            assertEquals(first + bytes, ring.ring().getLongAcquire(RingLayout.PRODUCER_POSITION));
            assertEquals(first + bytes, ring.ring().getLongAcquire(RingLayout.CONSUMER_POSITION));
            assertTrue(bytes > 6 * RING, "the edge was passed");
        }
    }

    /**
     * Fills the ring. The producer's position is then as far ahead of the consumer's position as possible. Often only
     * the producer's position has then overflowed.
     */
    private static void fillRing(RingPair ring) {
        while (ring.sender().progress() > 0) {
            // The loop ends when the ring has no room for a piece.
        }
    }

    private static void fill(MemorySegment memory, int seed) {
        for (long i = 0; i < memory.byteSize(); i += 8) {
            memory.set(ValueLayout.JAVA_LONG, i, (i + seed) * 0x9e3779b97f4a7c15L | 0x0101010101010101L);
        }
    }
}
