package org.millrace.abi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.ffi.device.ncclLLFifoLine;
import org.millrace.ffi.device.ncclLLFifoWords;

class LinesTest {
    private static final long OFFSET = 2 * LL128Line.BYTES;

    private final MemorySegment buffer = Arena.ofAuto().allocate(4 * LL128Line.BYTES, 16);

    @ParameterizedTest
    @ValueSource(
            longs = {0, (1L << 31) - 2, (1L << 31) - 1, 1L << 31, (1L << 32) - 2, (1L << 32) - 1, Long.MAX_VALUE})
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
        LL128Line.flagRelease(buffer, OFFSET, LL128Line.flag(step));
        assertEquals(step + 1, buffer.get(ValueLayout.JAVA_LONG, OFFSET + 15 * Long.BYTES));
        assertEquals(step + 1, LL128Line.flagAcquire(buffer, OFFSET));
        assertEquals(0, buffer.get(ValueLayout.JAVA_LONG, OFFSET + 14 * Long.BYTES));
        assertEquals(0, buffer.get(ValueLayout.JAVA_LONG, OFFSET + LL128Line.BYTES));
        assertEquals(120, LL128Line.DATA_BYTES);
    }
}
