package org.millrace.abi.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.millrace.ffi.device.ncclGinProxyGpuCtx_v2_t;

/**
 * Descriptors that the host writes are read back unchanged. The host also decodes words that a kernel of each release
 * would store.
 */
class GinDescriptorFormatTest {

    @ParameterizedTest
    @EnumSource(GinDescriptorFormat.class)
    void fieldsDoNotTouchEachOther(GinDescriptorFormat format) {
        Random random = new Random(7);
        long[] words = new long[GinDescriptorFormat.MAX_WORDS];
        for (int round = 0; round < 2000; round++) {
            long extreme = round % 3 - 1; // -1, 0, 1: all bits, no bit, random bits
            long any = extreme == 1 ? random.nextLong() : extreme;
            int op = (int) any & (format.hasGets() ? 0xffff : 0x3f);
            long size = any >>> 7;
            long address = any >>> 1;
            int counter = (int) any & format.maxCounters() - 1;
            int signal = (int) any & format.maxSignals() - 1;
            format.begin(words, op, size);
            format.target(words, address, address ^ 1);
            format.completion(words, counter, signal, any);
            if (round % 2 == 0) {
                format.inline(words, any);
                assertEquals(any, format.inlineValue(words), "round " + round);
            } else {
                format.source(words, address ^ 2, address ^ 3);
                assertEquals(address ^ 2, format.sourceHandle(words), "round " + round);
                assertEquals(address ^ 3, format.sourceOffset(words), "round " + round);
            }
            assertEquals(op, format.op(words), "round " + round);
            assertEquals(size, format.size(words), "round " + round);
            assertEquals(address, format.targetHandle(words), "round " + round);
            assertEquals(address ^ 1, format.targetOffset(words), "round " + round);
            assertEquals(counter, format.counter(words), "round " + round);
            assertEquals(signal, format.signal(words), "round " + round);
            assertEquals(any, format.signalValue(words), "round " + round);
            assertTrue(format.isVersionKnown(words));
            for (int word = 0; word < format.words(); word++) {
                assertEquals(1, words[word] & GinDescriptorFormat.FLAG, "flag of word " + word);
            }
        }
    }

    @Test
    void wordsOf28() {
        long[] words = {1 | (1 | 16) << 1 | 4096L << 7, 1 | 0x1234L << 1, 1 | 7L << 1, 1 | 0x10L << 1, 1 | 9L << 1,
                1 | 0xAAAAL << 8 | 0xBBBBL << 24 | 0x4444L << 40, 1 | 0x3333L << 8 | 0x1111_2222L << 24, 1};
        GinDescriptorFormat format = GinDescriptorFormat.V28;
        assertEquals(64, format.bytes());
        assertEquals(GinOp.PUT | GinOp.SIGNAL_ADD, format.op(words));
        assertEquals(4096, format.size(words));
        assertEquals(0x1234, format.sourceOffset(words));
        assertEquals(7, format.sourceHandle(words));
        assertEquals(0x10, format.targetOffset(words));
        assertEquals(9, format.targetHandle(words));
        assertEquals(0xAAAA, format.counter(words));
        assertEquals(0xBBBB, format.signal(words));
        assertEquals(0x1111_2222_3333_4444L, format.signalValue(words));
    }

    @Test
    void wordsOf29() {
        long[] words = {1 | (1 | 2 | 4) << 1 | 8L << 7, 1 | 0x5566_7788L << 8 | 0x3344L << 40, 1 | 0x1122L << 8, 1, 1,
                1 | 0x7F_FFFFL << 1 | 0xFF_FFFEL << 24 | 0x4444L << 48, 1 | 0x3333L << 8 | 0x1111_2222L << 24, 1};
        GinDescriptorFormat format = GinDescriptorFormat.V29;
        assertEquals(GinOp.PUT | GinOp.INLINE | GinOp.COUNTER, format.op(words));
        assertEquals(0x1122_3344_5566_7788L, format.inlineValue(words));
        assertEquals(0x7F_FFFF, format.counter(words));
        assertEquals(0xFF_FFFE, format.signal(words));
        assertEquals(0x1111_2222_3333_4444L, format.signalValue(words));
    }

    @Test
    void wordsOf30() {
        long[] words = new long[16];
        java.util.Arrays.fill(words, 1);
        words[0] = 1 | 2 << 1 | (1L << 56) << 7;
        words[6] = 1 | 2;
        words[7] = 1 | 128L << 8;
        GinDescriptorFormat format = GinDescriptorFormat.V30;
        assertEquals(128, format.bytes());
        assertTrue(format.isVersionKnown(words));
        assertEquals(GinOp.FLUSH, format.op(words));
        assertEquals(1L << 56, format.size(words));
        words[0] = 1 | 3 << 1;
        assertFalse(format.isVersionKnown(words));
    }

    /**
     * Descriptors of release 2.30.3 equal descriptors of 2.30.5 except for their version. In 2.30.3, the bits that
     * later releases use for strong signals have no meaning.
     */
    @Test
    void wordsOf30_3() {
        long[] words = new long[16];
        java.util.Arrays.fill(words, 1);
        words[0] = 1 | 1 << 1 | 64L << 7;
        words[5] = 1 | 0x7F_FFFFL << 1 | 0xFF_FFFEL << 24 | 0x4444L << 48;
        words[6] = 1 | 2 | 0x3333L << 8 | 0x1111_2222L << 24;
        words[7] = 1 | (64L | 16) << 8;
        GinDescriptorFormat format = GinDescriptorFormat.V30_3;
        assertEquals(128, format.bytes());
        assertEquals(48, format.contextBytes());
        assertTrue(format.isVersionKnown(words));
        assertFalse(GinDescriptorFormat.V30.isVersionKnown(words));
        assertEquals(GinOp.GET | GinOp.SIGNAL_ADD, format.op(words));
        assertEquals(64, format.size(words));
        assertEquals(0x7F_FFFF, format.counter(words));
        assertEquals(0xFF_FFFE, format.signal(words));
        assertEquals(0x1111_2222_3333_4444L, format.signalValue(words));
        assertFalse(format.resetsByOffset());
    }

    @Test
    void aDescriptorIsTakenWholeOrNotAtAll() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment bytes = arena.allocate(GinQueueMemory.bytes(GinDescriptorFormat.V30, 2, 4), 16);
            GinQueueMemory queues = GinQueueMemory.of(bytes, GinDescriptorFormat.V30, 2, 4);
            long at = queues.at(1, -1);
            assertEquals((4 + 3) * 128, at);
            long[] words = new long[GinDescriptorFormat.MAX_WORDS];
            GinDescriptorFormat.V30.begin(words, GinOp.PUT, 1);
            long[] incomplete = words.clone();
            incomplete[13] = 0;
            queues.storeOpaque(at, incomplete);
            assertTrue(queues.isBegun(at));
            assertFalse(queues.take(at, new long[16]));
            assertTrue(queues.isBegun(at), "nothing was taken out");
            queues.storeOpaque(at, words);
            long[] taken = new long[8];
            assertTrue(queues.take(at, taken));
            org.junit.jupiter.api.Assertions.assertArrayEquals(Arrays.copyOf(words, 8), taken);
            assertEquals(-1, bytes.mismatch(arena.allocate(bytes.byteSize())), "the place is zero");
        }
    }

    @Test
    void aContextsFieldsAreNccls() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment bytes = arena.allocate(GinGpuContext.BYTES_V2, GinGpuContext.ALIGNMENT);
            GinGpuContext context = GinGpuContext.of(bytes);
            context.set(8, 64, 1, 2, 3, 4, 5);
            context.setGets(6, 7, 8);
            assertEquals(8, ncclGinProxyGpuCtx_v2_t.nranks(bytes));
            assertEquals(64, ncclGinProxyGpuCtx_v2_t.queueSize(bytes));
            assertEquals(1, ncclGinProxyGpuCtx_v2_t.queues(bytes).address());
            assertEquals(2, ncclGinProxyGpuCtx_v2_t.pis(bytes).address());
            assertEquals(3, ncclGinProxyGpuCtx_v2_t.cis(bytes).address());
            assertEquals(4, ncclGinProxyGpuCtx_v2_t.counters(bytes).address());
            assertEquals(5, ncclGinProxyGpuCtx_v2_t.signals(bytes).address());
            assertEquals(6, ncclGinProxyGpuCtx_v2_t.signalOffsets(bytes).address());
            assertEquals(7, ncclGinProxyGpuCtx_v2_t.lastIssuedGet(bytes).address());
            assertEquals(8, ncclGinProxyGpuCtx_v2_t.lastVisibleGet(bytes).address());
            assertEquals(48, GinGpuContext.BYTES_V1);
            assertEquals(72, GinGpuContext.BYTES_V2);
            assertFalse(GinGpuContext.of(arena.allocate(48, 8)).hasSignalOffsets());
        }
    }
}
