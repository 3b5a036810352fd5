package org.millrace.device;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;

import org.junit.jupiter.api.Test;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;

/** A chunk that has enough data is divided into several slices. */
class ChunkShapeTest {

    private static final ConnectionLayout LAYOUT = ConnectionLayout.DEFAULT;
    /** Maximum number of bytes of a chunk with one slice. Larger chunks are divided. */
    private static final long ONE_SLICE = 2 * LAYOUT.slotBytes(Protocol.SIMPLE) / 32;

    @Test
    void aSmallChunkIsOneStep() {
        assertSame(ChunkShape.ONE_STEP, ChunkShape.FOUR_SLICES.of(0, LAYOUT));
        assertSame(ChunkShape.ONE_STEP, ChunkShape.FOUR_SLICES.of(ONE_SLICE, LAYOUT));
        assertSame(ChunkShape.TWO_SLICES, ChunkShape.FOUR_SLICES.of(ONE_SLICE + 1, LAYOUT));
        assertEquals(1, ChunkShape.ONE_STEP.chunkSteps());
    }

    @Test
    void aChunkThatFillsMoreThanOneSlotHasASliceForEach() {
        long slot = LAYOUT.slotBytes(Protocol.SIMPLE);
        assertSame(ChunkShape.TWO_SLICES, ChunkShape.FOUR_SLICES.of(slot, LAYOUT));
        assertSame(ChunkShape.FOUR_SLICES, ChunkShape.FOUR_SLICES.of(slot + 1, LAYOUT));
        assertEquals(ChunkShape.FOUR_SLICES.chunkBytes(LAYOUT), ChunkShape.TWO_SLICES.chunkBytes(LAYOUT));
    }

    @Test
    void aShapeWithOneSliceStaysUnchanged() {
        for (Protocol protocol : Protocol.values()) {
            ChunkShape shape = ChunkShape.ONE_STEP.in(protocol);
            assertSame(shape, shape.of(1, LAYOUT));
        }
        ChunkShape lines = ChunkShape.FOUR_SLICES.in(Protocol.LL);
        assertSame(lines, lines.of(1, LAYOUT));
    }
}
