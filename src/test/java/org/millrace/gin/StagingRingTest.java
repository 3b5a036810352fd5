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

/** Both ends of a ring agree on places that never overlap; a peer that lies about what it has read is found out. */
class StagingRingTest {

    private static final int CAPACITY = 4096;
    private static final int CHUNK = 2048;

    private final Arena arena = Arena.ofAuto();
    private final MemorySegment shared = arena.allocate(StagingRing.bytes(CAPACITY), 64);
    private final StagingRing ring = new StagingRing(shared, shared.address());
    private final MemorySegment bytes = arena.allocate(CHUNK, 64);
    private final Window window = new Windows().add(HostWindowMemory.register(new NoNetwork(), bytes));

    private static Outgoing frame() {
        Outgoing frame = new Outgoing();
        GinHeader.set(frame.header, GinHeader.PUT, 0, 1, 0, 0);
        return frame;
    }

    @Test
    void whatIsReadMakesRoomInOrder() {
        Random random = new Random(7);
        long[] sizes = new long[64];
        long[] starts = new long[64];
        StagingOut out = new StagingOut(ring, 1);
        StagingIn in = new StagingIn(ring);
        int sent = 0;
        int read = 0;
        int refusals = 0;
        for (int step = 0; step < 100_000; step++) {
            Outgoing frame = frame();
            long size = 1 + random.nextInt(random.nextBoolean() ? CHUNK : 65);
            if (sent - read < 64 && random.nextBoolean()) {
                if (!out.begin(frame, window, 0, size)) {
                    refusals++;
                    assertTrue(sent > read, "step " + step + ": an empty ring has room for any piece");
                    continue;
                }
                assertNull(in.problem(frame.header, CHUNK), "step " + step);
                Landing landing = new Landing();
                assertTrue(in.begin(frame.header, landing, window, 0));
                long start = GinHeader.stagedOffset(frame.header);
                assertTrue(start >= 4096 && start + size <= shared.byteSize(), "step " + step);
                for (int i = read; i < sent; i++) {
                    assertTrue(start >= starts[i % 64] + sizes[i % 64] || start + size <= starts[i % 64],
                            "step " + step + ": overlaps what was not read");
                }
                landings[sent % 64] = landing;
                starts[sent % 64] = start;
                sizes[sent++ % 64] = size;
            } else if (sent > read) {
                assertTrue(landings[read++ % 64].settle());
            }
        }
        assertTrue(refusals > 100, "the ring was full " + refusals + " times");
    }

    private final Landing[] landings = new Landing[64];

    @Test
    void aPeerThatReadsMoreThanThereIsOrTakesItBackIsFoundOut() {
        StagingOut out = new StagingOut(ring, 1);
        assertTrue(out.begin(frame(), window, 0, CHUNK));
        assertTrue(out.begin(frame(), window, 0, CHUNK));
        assertFalse(out.begin(frame(), window, 0, 1));
        for (long lie : new long[] {CAPACITY + 64, -1, Long.MIN_VALUE, Long.MAX_VALUE}) {
            ring.released().release(0, lie);
            GinException refused = assertThrows(GinException.class, () -> out.begin(frame(), window, 0, 1));
            assertTrue(refused.getMessage().startsWith("rank 1 says it has read"), refused.getMessage());
        }
        ring.released().release(0, CHUNK);
        assertTrue(out.begin(frame(), window, 0, CHUNK));
        ring.released().release(0, CHUNK - 64);
        assertThrows(GinException.class, () -> out.begin(frame(), window, 0, 1));
    }

    /** A communicator ended: the copy out of the ring may still be under way, and the peer must not write there. */
    @Test
    void whatWasAbandonedMakesNoRoom() {
        StagingOut out = new StagingOut(ring, 1);
        StagingIn in = new StagingIn(ring);
        Outgoing frame = frame();
        assertTrue(out.begin(frame, window, 0, CHUNK));
        Landing landing = new Landing();
        assertTrue(in.begin(frame.header, landing, window, 0));
        assertFalse(window.isIdle());
        landing.abandon();
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
