package org.millrace.net.shm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.millrace.net.FrameHeader;
import org.millrace.net.MemoryRegion;
import org.millrace.net.TestOptions;

/**
 * A thread that polls a payload's destination sees either the old or the new content of each word, never a mixture. The
 * lines of NCCL's LL protocol rely on this atomicity of words.
 */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class WholeWordsTest {

    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();
    private static final int BYTES = 4096;
    private static final int FRAMES = 200_000;

    @Test
    void wordsAreNotTorn() throws Exception {
        try (Arena arena = Arena.ofShared();
                RingPair ring = RingPair.make(TestOptions.ring(16 << 10, 1 << 10), -(5L << 10))) {
            assertTrue(ring.receiver().storesWholeWords(BYTES));
            MemoryRegion out = ring.register(arena.allocate(BYTES, 64));
            MemoryRegion in = ring.register(arena.allocate(BYTES, 64));
            AtomicBoolean done = new AtomicBoolean();
            CompletableFuture<Long> watching = CompletableFuture.supplyAsync(() -> torn(in.segment(), done));
            FrameHeader header = new FrameHeader();
            try {
                for (int frame = 0; frame < FRAMES; frame++) {
                    // lengths from one word to many pieces, at every offset within a cache line
                    int length = Long.BYTES * (1 + frame % 7 + (frame % 5 == 0 ? frame % 400 : 0));
                    int offset = Long.BYTES * (frame % 16);
                    for (int at = 0; at < length; at += Long.BYTES) {
                        out.segment().set(ValueLayout.JAVA_LONG, offset + at, word(frame));
                    }
                    header.payloadBytes(length);
                    assertTrue(ring.sender().offer(header, out, offset));
                    while (ring.receiver().poll() == null) {
                        ring.sender().progress();
                    }
                    ring.receiver().accept(in, offset);
                    while (ring.receiver().framesCompleted() <= frame) {
                        ring.sender().progress();
                        ring.receiver().progress();
                    }
                    assertEquals(word(frame), in.segment().get(ValueLayout.JAVA_LONG, offset + length - Long.BYTES));
                }
            } finally {
                done.set(true);
            }
            assertEquals(0L, watching.get(), "words were seen half old, half new");
        }
    }

    /** Returns a word of eight equal bytes, so that a partly written word is detected. */
    private static long word(int frame) {
        return (frame & 0xff) * 0x0101010101010101L;
    }

    private static long torn(MemorySegment memory, AtomicBoolean done) {
        long torn = 0;
        while (!done.get()) {
            for (long at = 0; at < BYTES; at += Long.BYTES) {
                long word = (long) LONG.getOpaque(memory, at);
                torn += word == (word & 0xff) * 0x0101010101010101L ? 0 : 1;
            }
        }
        return torn;
    }
}
