package org.millrace.abi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.ffi.device.ncclLLFifoLine;
import org.millrace.ffi.device.ncclLLFifoWords;

class LinesTest {
    private static final long OFFSET = 2 * LL128Line.BYTES;

    private final MemorySegment buffer = Arena.ofAuto().allocate(4 * LL128Line.BYTES, 16);

    @ParameterizedTest
    @ValueSource(longs = {0, (1L << 31) - 2, (1L << 31) - 1, 1L << 31, (1L << 32) - 2, (1L << 32) - 1, Long.MAX_VALUE})
    void anLLLineIsReadyOnlyForItsStep(long step) {
        int flag = LLLine.flag(step);
        assertEquals((step + 1) & 0xffff_ffffL, Integer.toUnsignedLong(flag));
        LLLine.storeOpaque(buffer, OFFSET, LLLine.half(-2, flag), LLLine.half(7, flag));
        assertTrue(LLLine.isReadyAcquire(buffer, OFFSET, flag));
        assertFalse(LLLine.isReadyAcquire(buffer, OFFSET, LLLine.flag(step + 8)));
        assertFalse(LLLine.isReadyAcquire(buffer, OFFSET, LLLine.flag(step - 8)));
        assertEquals(-2, LLLine.data(LLLine.firstHalfAcquire(buffer, OFFSET)));
        assertEquals(7, LLLine.data(LLLine.secondHalfAcquire(buffer, OFFSET)));
    }

    @Test
    void anLLLineNeedsBothFlags() {
        LLLine.storeOpaque(buffer, OFFSET, LLLine.half(1, 5), LLLine.half(2, 4));
        assertFalse(LLLine.isReadyAcquire(buffer, OFFSET, 5));
        assertFalse(LLLine.isReadyAcquire(buffer, OFFSET, 4));
    }

    @Test
    void anLLLinesPartsLieWhereTheKernelLooks() {
        LLLine.storeOpaque(buffer, OFFSET, LLLine.half(11, 12), LLLine.half(13, 14));
        MemorySegment words = ncclLLFifoLine.words(buffer.asSlice(OFFSET, LLLine.BYTES));
        assertEquals(11, ncclLLFifoWords.data1(words));
        assertEquals(12, ncclLLFifoWords.flag1(words));
        assertEquals(13, ncclLLFifoWords.data2(words));
        assertEquals(14, ncclLLFifoWords.flag2(words));
        assertEquals(16, LLLine.BYTES);
        assertEquals(8, LLLine.DATA_BYTES);
    }

    @Test
    void slotsAreCleanedOnceInTwoToTheThirtyFirstSteps() {
        assertFalse(LLLine.isCleaned(0x7fff_fff7L));
        for (long step = 0x7fff_fff8L; step <= 0x7fff_ffffL; step++) {
            assertTrue(LLLine.isCleaned(step));
            assertTrue(LLLine.isCleaned(step + (1L << 31)));
            assertTrue(LLLine.isCleaned(step + (1L << 32)));
        }
        assertFalse(LLLine.isCleaned(0x8000_0000L));
    }

    @ParameterizedTest
    @ValueSource(longs = {0, (1L << 31) - 1, (1L << 32) - 1, 1L << 32, Long.MAX_VALUE - 1, Long.MAX_VALUE})
    void anLL128FlagIsTheLastOfSixteenWords(long step) {
        LL128Line.NCCL.flagRelease(buffer, OFFSET, LL128Line.flag(step));
        assertEquals(step + 1, buffer.get(ValueLayout.JAVA_LONG, OFFSET + 15 * Long.BYTES));
        assertEquals(step + 1, LL128Line.NCCL.flagAcquire(buffer, OFFSET));
        assertEquals(0, buffer.get(ValueLayout.JAVA_LONG, OFFSET + 14 * Long.BYTES));
        assertEquals(0, buffer.get(ValueLayout.JAVA_LONG, OFFSET + LL128Line.BYTES));
        assertEquals(120, LL128Line.DATA_BYTES);
    }

    @ParameterizedTest
    @ValueSource(longs = {0, (1L << 31) - 1, (1L << 32) - 1, Long.MAX_VALUE})
    void manyLLLinesAreEachALine(long step) {
        int flag = LLLine.flag(step);
        buffer.fill((byte) 0x55);
        LLLine.storeOpaque(buffer, OFFSET, new long[] {-2 & 0xffff_ffffL | 7L << 32, 0x8000_0000_7fff_ffffL, 3}, 2,
                flag);
        long next = OFFSET + LLLine.BYTES;
        assertTrue(LLLine.isReadyAcquire(buffer, OFFSET, flag));
        assertTrue(LLLine.isReadyAcquire(buffer, next, flag));
        assertTrue(LLLine.areReadyAcquire(buffer, OFFSET, 2 * LLLine.BYTES, flag, new long[6]));
        assertFalse(LLLine.areReadyAcquire(buffer, OFFSET, 3 * LLLine.BYTES, flag, new long[6]));
        assertEquals(-2, LLLine.data(LLLine.firstHalfAcquire(buffer, OFFSET)));
        assertEquals(7, LLLine.data(LLLine.secondHalfAcquire(buffer, OFFSET)));
        assertEquals(0x7fff_ffff, LLLine.data(LLLine.firstHalfAcquire(buffer, next)));
        assertEquals(0x8000_0000, LLLine.data(LLLine.secondHalfAcquire(buffer, next)));
        assertUntouched(0, OFFSET);
        assertUntouched(OFFSET + 2 * LLLine.BYTES, buffer.byteSize());
    }

    @Test
    void manyLL128LinesCarryTheirDataAndTheFlag() {
        buffer.fill((byte) 0x55);
        MemorySegment data = MemorySegment.ofArray(LongStream.range(100, 130).toArray());
        LL128Line.NCCL.storeRelease(buffer, LL128Line.BYTES, data, 2, 6);
        for (int line = 0; line < 2; line++) {
            long at = (1 + line) * LL128Line.BYTES;
            assertEquals(-1, buffer.asSlice(at, LL128Line.DATA_BYTES)
                    .mismatch(data.asSlice(line * LL128Line.DATA_BYTES, LL128Line.DATA_BYTES)));
            assertEquals(6, LL128Line.NCCL.flagAcquire(buffer, at));
        }
        assertUntouched(0, LL128Line.BYTES);
        assertUntouched(3 * LL128Line.BYTES, buffer.byteSize());
    }

    @Test
    void ll128FlagsAreStoredWithoutData() {
        buffer.fill((byte) 0x55);
        LL128Line.NCCL.flagsRelease(buffer, LL128Line.BYTES, 2, 6);
        assertUntouched(0, LL128Line.BYTES + LL128Line.DATA_BYTES);
        assertUntouched(2 * LL128Line.BYTES, 2 * LL128Line.BYTES + LL128Line.DATA_BYTES);
        assertUntouched(3 * LL128Line.BYTES, buffer.byteSize());
        assertEquals(6, LL128Line.NCCL.flagAcquire(buffer, LL128Line.BYTES));
        assertEquals(6, LL128Line.NCCL.flagAcquire(buffer, 2 * LL128Line.BYTES));
    }

    @Test
    void ll128LinesAreReadyWhenTheLastOneIs() {
        for (long missing = 0; missing < 4; missing++) {
            LL128Line.NCCL.flagsRelease(buffer, 0, 4, 1L << 40 | 6);
            LL128Line.NCCL.flagRelease(buffer, missing * LL128Line.BYTES, 6);
            assertFalse(LL128Line.NCCL.areReadyAcquire(buffer, 0, buffer.byteSize(), 1L << 40 | 6),
                    "without line " + missing);
            assertTrue(LL128Line.NCCL.areReadyAcquire(buffer, 0, missing * LL128Line.BYTES, 1L << 40 | 6),
                    "before line " + missing);
        }
    }

    @Test
    void ll128LinesAreCopiedWithTheFlagsThatTheyCarry() {
        MemorySegment copy = Arena.ofAuto().allocate(buffer.byteSize(), 16);
        for (long word = 0; word < buffer.byteSize() / Long.BYTES; word++) {
            buffer.setAtIndex(ValueLayout.JAVA_LONG, word, word + 1);
        }
        LL128Line.NCCL.copyRelease(buffer, copy, LL128Line.BYTES, 2 * LL128Line.BYTES);
        MemorySegment outside = Arena.ofAuto().allocate(LL128Line.BYTES);
        assertEquals(-1, copy.asSlice(0, LL128Line.BYTES).mismatch(outside));
        assertEquals(-1, copy.asSlice(LL128Line.BYTES, 2 * LL128Line.BYTES)
                .mismatch(buffer.asSlice(LL128Line.BYTES, 2 * LL128Line.BYTES)));
        assertEquals(-1, copy.asSlice(3 * LL128Line.BYTES).mismatch(outside));
    }

    @Test
    void linesMustAllLieInTheSegment() {
        long[] data = new long[64];
        long size = buffer.byteSize();
        assertThrows(IndexOutOfBoundsException.class,
                () -> LLLine.storeOpaque(buffer, size - LLLine.BYTES, data, 2, 1));
        assertThrows(IndexOutOfBoundsException.class, () -> LLLine.storeOpaque(buffer, -LLLine.BYTES, data, 2, 1));
        assertThrows(IndexOutOfBoundsException.class, () -> LLLine.storeOpaque(buffer, LLLine.BYTES, data, -1, 1));
        MemorySegment words = MemorySegment.ofArray(data);
        assertThrows(IndexOutOfBoundsException.class,
                () -> LL128Line.NCCL.storeRelease(buffer, size - LL128Line.BYTES, words, 2, 1));
        assertThrows(IndexOutOfBoundsException.class,
                () -> LL128Line.NCCL.flagsRelease(buffer, size - LL128Line.BYTES, 2, 1));
        assertThrows(IndexOutOfBoundsException.class,
                () -> LL128Line.NCCL.areReadyAcquire(buffer, size - LL128Line.BYTES, 2 * LL128Line.BYTES, 1));
        MemorySegment shorter = buffer.asSlice(0, size - LL128Line.BYTES);
        assertThrows(IndexOutOfBoundsException.class, () -> LL128Line.NCCL.copyRelease(buffer, shorter, 0, size));
        assertThrows(IndexOutOfBoundsException.class, () -> LL128Line.NCCL.copyRelease(shorter, buffer, 0, size));
        assertThrows(IndexOutOfBoundsException.class,
                () -> LL128Line.NCCL.storeRelease(buffer, 0, words.asSlice(0, 59 * Long.BYTES), 4, 1));
    }

    @Test
    void linesLieInWritableNativeMemoryThatIsThere() {
        long[] data = new long[15];
        MemorySegment words = MemorySegment.ofArray(data);
        MemorySegment heap = MemorySegment.ofArray(new long[64]);
        assertThrows(IllegalArgumentException.class, () -> LLLine.storeOpaque(heap, 0, data, 1, 1));
        assertThrows(IllegalArgumentException.class, () -> LL128Line.NCCL.storeRelease(heap, 0, words, 1, 1));
        assertThrows(UnsupportedOperationException.class, () -> LLLine.storeOpaque(buffer.asReadOnly(), 0, data, 1, 1));
        assertThrows(UnsupportedOperationException.class,
                () -> LL128Line.NCCL.copyRelease(buffer, buffer.asReadOnly(), 0, LL128Line.BYTES));
        assertThrows(IllegalArgumentException.class, () -> LLLine.storeOpaque(buffer, 4, data, 1, 1));
        assertThrows(IllegalArgumentException.class,
                () -> LL128Line.NCCL.areReadyAcquire(buffer, 4, LL128Line.BYTES, 1));
        MemorySegment freed;
        try (Arena arena = Arena.ofConfined()) {
            freed = arena.allocate(LL128Line.BYTES, 16);
        }
        assertThrows(IllegalStateException.class, () -> LLLine.storeOpaque(freed, 0, data, 1, 1));
        assertThrows(IllegalStateException.class, () -> LL128Line.NCCL.flagsRelease(freed, 0, 1, 1));
    }

    private void assertUntouched(long from, long to) {
        for (long at = from; at < to; at++) {
            assertEquals(0x55, buffer.get(ValueLayout.JAVA_BYTE, at), "byte " + at);
        }
    }
}
