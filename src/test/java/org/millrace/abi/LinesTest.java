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
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.ffi.device.ncclLLFifoLine;
import org.millrace.ffi.device.ncclLLFifoWords;

@ParameterizedClass
@ValueSource(longs = {128, 64})
class LinesTest {
    private final LL128Line line;
    private final MemorySegment buffer;
    private final long offset;

    LinesTest(long bytes) {
        line = new LL128Line(bytes);
        buffer = Arena.ofAuto().allocate(4 * bytes, 16);
        offset = 2 * bytes;
    }

    @ParameterizedTest
    @ValueSource(longs = {0, (1L << 31) - 2, (1L << 31) - 1, 1L << 31, (1L << 32) - 2, (1L << 32) - 1, Long.MAX_VALUE})
    void anLLLineIsReadyOnlyForItsStep(long step) {
        int flag = LLLine.flag(step);
        assertEquals((step + 1) & 0xffff_ffffL, Integer.toUnsignedLong(flag));
        LLLine.storeOpaque(buffer, offset, LLLine.half(-2, flag), LLLine.half(7, flag));
        assertTrue(isReady(offset, flag));
        assertFalse(isReady(offset, LLLine.flag(step + 8)));
        assertFalse(isReady(offset, LLLine.flag(step - 8)));
        assertEquals(-2, LLLine.data(LLLine.firstHalfAcquire(buffer, offset)));
        assertEquals(7, LLLine.data(LLLine.secondHalfAcquire(buffer, offset)));
    }

    @Test
    void anLLLineNeedsBothFlags() {
        LLLine.storeOpaque(buffer, offset, LLLine.half(1, 5), LLLine.half(2, 4));
        assertFalse(isReady(offset, 5));
        assertFalse(isReady(offset, 4));
    }

    @Test
    void anLLLinesPartsLieWhereTheKernelLooks() {
        LLLine.storeOpaque(buffer, offset, LLLine.half(11, 12), LLLine.half(13, 14));
        MemorySegment words = ncclLLFifoLine.words(buffer.asSlice(offset, LLLine.BYTES));
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
    void anLL128FlagIsTheLastWordOfItsLine(long step) {
        line.flagsRelease(buffer, offset, 1, LL128Line.flag(step));
        assertEquals(step + 1, buffer.get(ValueLayout.JAVA_LONG, offset + line.bytes() - Long.BYTES));
        assertEquals(0, buffer.get(ValueLayout.JAVA_LONG, offset + line.bytes() - 2 * Long.BYTES));
        assertEquals(0, buffer.get(ValueLayout.JAVA_LONG, offset + line.bytes()));
        assertTrue(line.areReadyAcquire(buffer, offset, line.bytes(), LL128Line.flag(step)));
    }

    @ParameterizedTest
    @ValueSource(longs = {0, (1L << 31) - 1, (1L << 32) - 1, Long.MAX_VALUE})
    void manyLLLinesAreEachALine(long step) {
        int flag = LLLine.flag(step);
        buffer.fill((byte) 0x55);
        LLLine.storeOpaque(buffer, offset, new long[] {-2 & 0xffff_ffffL | 7L << 32, 0x8000_0000_7fff_ffffL, 3}, 2,
                flag);
        long next = offset + LLLine.BYTES;
        assertTrue(isReady(offset, flag));
        assertTrue(isReady(next, flag));
        assertTrue(LLLine.areReadyAcquire(buffer, offset, 2 * LLLine.BYTES, flag, new long[6]));
        assertFalse(LLLine.areReadyAcquire(buffer, offset, 3 * LLLine.BYTES, flag, new long[6]));
        assertEquals(-2, LLLine.data(LLLine.firstHalfAcquire(buffer, offset)));
        assertEquals(7, LLLine.data(LLLine.secondHalfAcquire(buffer, offset)));
        assertEquals(0x7fff_ffff, LLLine.data(LLLine.firstHalfAcquire(buffer, next)));
        assertEquals(0x8000_0000, LLLine.data(LLLine.secondHalfAcquire(buffer, next)));
        assertUntouched(0, offset);
        assertUntouched(offset + 2 * LLLine.BYTES, buffer.byteSize());
    }

    @Test
    void manyLL128LinesCarryTheirDataAndTheFlag() {
        buffer.fill((byte) 0x55);
        MemorySegment data = MemorySegment.ofArray(LongStream.range(100, 130).toArray());
        line.storeRelease(buffer, line.bytes(), data, 2, 6);
        for (int i = 0; i < 2; i++) {
            long at = (1 + i) * line.bytes();
            assertEquals(-1, buffer.asSlice(at, line.dataBytes())
                    .mismatch(data.asSlice(i * line.dataBytes(), line.dataBytes())));
            assertEquals(6, flagOf(at));
        }
        assertUntouched(0, line.bytes());
        assertUntouched(3 * line.bytes(), buffer.byteSize());
    }

    @Test
    void ll128FlagsAreStoredWithoutData() {
        buffer.fill((byte) 0x55);
        line.flagsRelease(buffer, line.bytes(), 2, 6);
        assertUntouched(0, line.bytes() + line.dataBytes());
        assertUntouched(2 * line.bytes(), 2 * line.bytes() + line.dataBytes());
        assertUntouched(3 * line.bytes(), buffer.byteSize());
        assertEquals(6, flagOf(line.bytes()));
        assertEquals(6, flagOf(2 * line.bytes()));
    }

    @Test
    void ll128LinesAreReadyWhenTheLastOneIs() {
        for (long missing = 0; missing < 4; missing++) {
            line.flagsRelease(buffer, 0, 4, 1L << 40 | 6);
            line.flagsRelease(buffer, missing * line.bytes(), 1, 6);
            assertFalse(line.areReadyAcquire(buffer, 0, buffer.byteSize(), 1L << 40 | 6), "without line " + missing);
            assertTrue(line.areReadyAcquire(buffer, 0, missing * line.bytes(), 1L << 40 | 6), "before line " + missing);
        }
    }

    @Test
    void ll128LinesAreCopiedWithTheFlagsThatTheyCarry() {
        MemorySegment copy = Arena.ofAuto().allocate(buffer.byteSize(), 16);
        for (long word = 0; word < buffer.byteSize() / Long.BYTES; word++) {
            buffer.setAtIndex(ValueLayout.JAVA_LONG, word, word + 1);
        }
        line.copyRelease(buffer, copy, line.bytes(), 2 * line.bytes());
        MemorySegment outside = Arena.ofAuto().allocate(line.bytes());
        assertEquals(-1, copy.asSlice(0, line.bytes()).mismatch(outside));
        assertEquals(-1,
                copy.asSlice(line.bytes(), 2 * line.bytes()).mismatch(buffer.asSlice(line.bytes(), 2 * line.bytes())));
        assertEquals(-1, copy.asSlice(3 * line.bytes()).mismatch(outside));
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
                () -> line.storeRelease(buffer, size - line.bytes(), words, 2, 1));
        assertThrows(IndexOutOfBoundsException.class, () -> line.flagsRelease(buffer, size - line.bytes(), 2, 1));
        assertThrows(IndexOutOfBoundsException.class,
                () -> line.areReadyAcquire(buffer, size - line.bytes(), 2 * line.bytes(), 1));
        MemorySegment shorter = buffer.asSlice(0, size - line.bytes());
        assertThrows(IndexOutOfBoundsException.class, () -> line.copyRelease(buffer, shorter, 0, size));
        assertThrows(IndexOutOfBoundsException.class, () -> line.copyRelease(shorter, buffer, 0, size));
        assertThrows(IndexOutOfBoundsException.class,
                () -> line.storeRelease(buffer, 0, words.asSlice(0, 4 * line.dataBytes() - 1), 4, 1));
    }

    @Test
    void linesLieInWritableNativeMemoryThatIsThere() {
        long[] data = new long[15];
        MemorySegment words = MemorySegment.ofArray(data);
        MemorySegment heap = MemorySegment.ofArray(new long[64]);
        assertThrows(IllegalArgumentException.class, () -> LLLine.storeOpaque(heap, 0, data, 1, 1));
        assertThrows(IllegalArgumentException.class, () -> line.storeRelease(heap, 0, words, 1, 1));
        assertThrows(UnsupportedOperationException.class, () -> LLLine.storeOpaque(buffer.asReadOnly(), 0, data, 1, 1));
        assertThrows(UnsupportedOperationException.class,
                () -> line.copyRelease(buffer, buffer.asReadOnly(), 0, line.bytes()));
        assertThrows(IllegalArgumentException.class, () -> LLLine.storeOpaque(buffer, 4, data, 1, 1));
        assertThrows(IllegalArgumentException.class, () -> line.areReadyAcquire(buffer, 4, line.bytes(), 1));
        MemorySegment freed;
        try (Arena arena = Arena.ofConfined()) {
            freed = arena.allocate(line.bytes(), 16);
        }
        assertThrows(IllegalStateException.class, () -> LLLine.storeOpaque(freed, 0, data, 1, 1));
        assertThrows(IllegalStateException.class, () -> line.flagsRelease(freed, 0, 1, 1));
    }

    private boolean isReady(long at, int flag) {
        return LLLine.areReadyAcquire(buffer, at, LLLine.BYTES, flag, new long[2]);
    }

    private long flagOf(long at) {
        return buffer.get(ValueLayout.JAVA_LONG, at + line.dataBytes());
    }

    private void assertUntouched(long from, long to) {
        for (long at = from; at < to; at++) {
            assertEquals(0x55, buffer.get(ValueLayout.JAVA_BYTE, at), "byte " + at);
        }
    }
}
