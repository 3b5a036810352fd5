package org.millrace.bench.access;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/**
 * Accesses to native memory. {@code access.c} has the same loops. Each loop uses the eight words of a line one after
 * the other, so that the compiler cannot move a plain access out of the loop.
 */
final class SegmentAccess {

    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();
    private static final MemorySegment LINE = LineMemory.chosen();
    private static final long DATA = LineMemory.DATA;
    private static final long POLLED = LineMemory.POLLED;

    private SegmentAccess() {}

    private static long word(long i) {
        return (i & 7) << 3;
    }

    static long getPlain(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            sum += (long) LONG.get(LINE, word(i));
        }
        return sum + (long) LONG.get(LINE, 0L);
    }

    static long getOpaque(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            sum += (long) LONG.getOpaque(LINE, word(i));
        }
        return sum + (long) LONG.get(LINE, 0L);
    }

    static long getAcquire(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            sum += (long) LONG.getAcquire(LINE, word(i));
        }
        return sum + (long) LONG.get(LINE, 0L);
    }

    static long getVolatile(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            sum += (long) LONG.getVolatile(LINE, word(i));
        }
        return sum + (long) LONG.get(LINE, 0L);
    }

    static long setPlain(long count) {
        for (long i = 0; i < count; i++) {
            LONG.set(LINE, word(i), i);
        }
        return (long) LONG.get(LINE, 0L);
    }

    static long setOpaque(long count) {
        for (long i = 0; i < count; i++) {
            LONG.setOpaque(LINE, word(i), i);
        }
        return (long) LONG.get(LINE, 0L);
    }

    static long setRelease(long count) {
        for (long i = 0; i < count; i++) {
            LONG.setRelease(LINE, word(i), i);
        }
        return (long) LONG.get(LINE, 0L);
    }

    static long setVolatile(long count) {
        for (long i = 0; i < count; i++) {
            LONG.setVolatile(LINE, word(i), i);
        }
        return (long) LONG.get(LINE, 0L);
    }

    static long getAndAdd(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            sum += (long) LONG.getAndAdd(LINE, word(i), 1L);
        }
        return sum + (long) LONG.get(LINE, 0L);
    }

    static long compareAndSet(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            long seen = (long) LONG.get(LINE, word(i));
            sum += LONG.compareAndSet(LINE, word(i), seen, seen + 1) ? 1 : 0;
        }
        return sum + (long) LONG.get(LINE, 0L);
    }

    static long failedCompareAndSet(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            sum += LONG.compareAndSet(LINE, word(i), -1L, i) ? 1 : 0;
        }
        return sum + (long) LONG.get(LINE, 0L);
    }

    static long loadLoadFence(long count) {
        for (long i = 0; i < count; i++) {
            LONG.setOpaque(LINE, word(i), i);
            VarHandle.loadLoadFence();
        }
        return (long) LONG.get(LINE, 0L);
    }

    static long acquireFence(long count) {
        for (long i = 0; i < count; i++) {
            LONG.setOpaque(LINE, word(i), i);
            VarHandle.acquireFence();
        }
        return (long) LONG.get(LINE, 0L);
    }

    static long storeStoreFence(long count) {
        for (long i = 0; i < count; i++) {
            LONG.setOpaque(LINE, word(i), i);
            VarHandle.storeStoreFence();
        }
        return (long) LONG.get(LINE, 0L);
    }

    static long releaseFence(long count) {
        for (long i = 0; i < count; i++) {
            LONG.setOpaque(LINE, word(i), i);
            VarHandle.releaseFence();
        }
        return (long) LONG.get(LINE, 0L);
    }

    static long fullFence(long count) {
        for (long i = 0; i < count; i++) {
            LONG.setOpaque(LINE, word(i), i);
            VarHandle.fullFence();
        }
        return (long) LONG.get(LINE, 0L);
    }

    static long dataRelease(long count) {
        for (long i = 0; i < count; i++) {
            LONG.set(LINE, DATA + word(i), i);
            LONG.setRelease(LINE, word(i), i);
        }
        return (long) LONG.get(LINE, 0L);
    }

    static long dataStoreFence(long count) {
        for (long i = 0; i < count; i++) {
            LONG.set(LINE, DATA + word(i), i);
            VarHandle.storeStoreFence();
            LONG.setOpaque(LINE, word(i), i);
        }
        return (long) LONG.get(LINE, 0L);
    }

    static long dataFullFence(long count) {
        for (long i = 0; i < count; i++) {
            LONG.set(LINE, DATA + word(i), i);
            VarHandle.fullFence();
            LONG.setOpaque(LINE, word(i), i);
        }
        return (long) LONG.get(LINE, 0L);
    }

    static long dataVolatile(long count) {
        for (long i = 0; i < count; i++) {
            LONG.set(LINE, DATA + word(i), i);
            LONG.setVolatile(LINE, word(i), i);
        }
        return (long) LONG.get(LINE, 0L);
    }

    static long storeFenceLoad(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            LONG.setOpaque(LINE, word(i), i);
            VarHandle.fullFence();
            sum += (long) LONG.getAcquire(LINE, DATA + word(i));
        }
        return sum + (long) LONG.get(LINE, 0L);
    }

    static long storeFenceOpaqueLoad(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            LONG.setOpaque(LINE, word(i), i);
            VarHandle.fullFence();
            sum += (long) LONG.getOpaque(LINE, DATA + word(i));
        }
        return sum + (long) LONG.get(LINE, 0L);
    }

    static long volatileStoreLoad(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            LONG.setVolatile(LINE, word(i), i);
            sum += (long) LONG.getVolatile(LINE, DATA + word(i));
        }
        return sum + (long) LONG.get(LINE, 0L);
    }

    static long dataReleasePoll(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            LONG.set(LINE, DATA + word(i), i);
            LONG.setRelease(LINE, word(i), i);
            sum += (long) LONG.getAcquire(LINE, POLLED + word(i));
        }
        return sum + (long) LONG.get(LINE, 0L);
    }

    static long dataFullFencePoll(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            LONG.set(LINE, DATA + word(i), i);
            VarHandle.fullFence();
            LONG.setOpaque(LINE, word(i), i);
            sum += (long) LONG.getAcquire(LINE, POLLED + word(i));
        }
        return sum + (long) LONG.get(LINE, 0L);
    }

    static long dataVolatilePoll(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            LONG.set(LINE, DATA + word(i), i);
            LONG.setVolatile(LINE, word(i), i);
            sum += (long) LONG.getAcquire(LINE, POLLED + word(i));
        }
        return sum + (long) LONG.get(LINE, 0L);
    }
}
