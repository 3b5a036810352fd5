package org.millrace.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.millrace.gin.InboundFrames.InboundFrame;
import org.millrace.gin.OutboundFrames.OutboundFrame;
import org.millrace.proxy.MemoryFrames;

/**
 * At either end, the used ranges of a staging ring never overlap. A peer that reports a false read position is
 * detected.
 */
class StagingRingTest {

    private static final int CAPACITY = 4096;
    private static final int CHUNK = 2048;

    private final Arena arena = Arena.ofAuto();
    private final MemorySegment shared = arena.allocate(StagingRing.bytes(CAPACITY), 64);
    private final StagingRing ring = new StagingRing(shared, shared.address());
    private final MemorySegment bytes = arena.allocate(CHUNK, 64);
    private final Window window = new Windows().add(HostWindowMemory.register(new NoNetwork(), bytes));
    private final LocalRank rank = new LocalRank(0, 2, new GinOptions(CHUNK, 8, java.time.Duration.ZERO), new Windows(),
            new GinContexts(0, 0, 2));

    private static OutboundFrame frame() {
        OutboundFrame frame = new OutboundFrame();
        GinHeader.set(frame.header, GinHeader.PUT, 0, 1, 0, 0);
        return frame;
    }

    private FramePath sender() {
        return new FramePath(rank, new OutboundFrames(new MemoryFrames(null).sender(), 8),
                new StagingRing.Writer(ring, 1));
    }

    private static String problem(StagingRing.Reader in, OutboundFrame frame) {
        return in.problem(GinHeader.stagedOffset(frame.header), GinHeader.stagedBytes(frame.header), CHUNK);
    }

    private boolean begin(StagingRing.Reader in, OutboundFrame frame, InboundFrame inbound) {
        if (!in.begin(inbound.transfer, window, 0, GinHeader.stagedBytes(frame.header))) {
            return false;
        }
        inbound.staged(in, in.position());
        return true;
    }

    @Test
    void whatIsReadMakesRoomInOrder() {
        Random random = new Random(7);
        long[] sizes = new long[64];
        long[] starts = new long[64];
        FramePath out = sender();
        StagingRing.Reader in = new StagingRing.Reader(ring);
        int sent = 0;
        int read = 0;
        int refusals = 0;
        for (int step = 0; step < 100_000; step++) {
            OutboundFrame frame = frame();
            long size = 1 + random.nextInt(random.nextBoolean() ? CHUNK : 65);
            if (sent - read < 64 && random.nextBoolean()) {
                if (!out.begin(frame, window, 0, size)) {
                    refusals++;
                    assertTrue(sent > read, "step " + step + ": an empty ring has room for any piece");
                    continue;
                }
                assertNull(problem(in, frame), "step " + step);
                InboundFrame inbound = new InboundFrame();
                assertTrue(begin(in, frame, inbound));
                long start = GinHeader.stagedOffset(frame.header);
                assertTrue(start >= 4096 && start + size <= shared.byteSize(), "step " + step);
                for (int i = read; i < sent; i++) {
                    assertTrue(start >= starts[i % 64] + sizes[i % 64] || start + size <= starts[i % 64],
                            "step " + step + ": overlaps what was not read");
                }
                inbounds[sent % 64] = inbound;
                starts[sent % 64] = start;
                sizes[sent++ % 64] = size;
            } else if (sent > read) {
                assertTrue(inbounds[read++ % 64].settle());
            }
        }
        assertTrue(refusals > 100, "the ring was full " + refusals + " times");
    }

    private final InboundFrame[] inbounds = new InboundFrame[64];

    @Test
    void aPeerThatReadsMoreThanThereIsOrTakesItBackIsFoundOut() {
        FramePath out = sender();
        assertTrue(out.begin(frame(), window, 0, CHUNK));
        assertTrue(out.begin(frame(), window, 0, CHUNK));
        assertFalse(out.begin(frame(), window, 0, 1));
        for (long lie : new long[] {CAPACITY + 64, -1, Long.MIN_VALUE, Long.MAX_VALUE}) {
            ring.released().release(0, lie);
            GinException refused = assertThrows(GinException.class, () -> out.begin(frame(), window, 0, 1));
            assertTrue(refused.getMessage().startsWith("rank 1 reports read position"), refused.getMessage());
        }
        ring.released().release(0, CHUNK);
        assertTrue(out.begin(frame(), window, 0, CHUNK));
        ring.released().release(0, CHUNK - 64);
        assertThrows(GinException.class, () -> out.begin(frame(), window, 0, 1));
    }

    /**
     * A communicator has ended while a copy out of the ring is in progress. The peer must not overwrite the range that
     * the copy reads.
     */
    @Test
    void whatWasAbandonedMakesNoRoom() {
        FramePath out = sender();
        StagingRing.Reader in = new StagingRing.Reader(ring);
        OutboundFrame frame = frame();
        assertTrue(out.begin(frame, window, 0, CHUNK));
        InboundFrame inbound = new InboundFrame();
        assertTrue(begin(in, frame, inbound));
        assertFalse(window.isIdle());
        inbound.abandon();
        frame.abandon();
        assertTrue(window.isIdle());
        assertEquals(0, ring.released().acquire(0));
    }

    @Test
    void aRingMustHaveRoomForTwoChunks() {
        assertThrows(IllegalArgumentException.class, () -> new StagingRing(shared.asSlice(0, CAPACITY), 0));
        GinPair pair = new GinPair(new GinOptions(CHUNK, 8, java.time.Duration.ZERO), null);
        assertTrue(assertThrows(IllegalArgumentException.class, () -> pair.stage(CHUNK, 0)).getMessage()
                .contains("two chunks of 2048"));
        pair.close();
    }

    @Test
    void putsAreCutSoThatCopiesOverlap() {
        assertEquals(1 << 20, StagingRing.piece(16 << 20, 1 << 20));
        assertEquals(256 << 10, StagingRing.piece(1 << 20, 1 << 20));
        assertEquals(512 << 10, StagingRing.piece(2 << 20, 1 << 20));
        assertEquals(256 << 10, StagingRing.piece(8, 1 << 20));
    }
}
