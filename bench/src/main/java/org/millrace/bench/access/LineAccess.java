package org.millrace.bench.access;

import java.lang.invoke.VarHandle;

/**
 * Accesses to the memory of this JVM. {@code access.c} has the same loops. Each loop uses the eight words of a line one
 * after the other, so that the compiler cannot move a plain access out of the loop.
 */
final class LineAccess {

    /** Access by offset in bytes, to the memory that {@link LineMemory} has when this class is initialized. */
    private static final VarHandle LONG = LineMemory.chosen();
    private static final long DATA = LineMemory.DATA;
    private static final long POLLED = LineMemory.POLLED;

    private LineAccess() {}

    private static long word(long i) {
        return (i & 7) << 3;
    }

    static long getPlain(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            sum += (long) LONG.get(word(i));
        }
        return sum + (long) LONG.get(0L);
    }

    static long getOpaque(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            sum += (long) LONG.getOpaque(word(i));
        }
        return sum + (long) LONG.get(0L);
    }

    static long getAcquire(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            sum += (long) LONG.getAcquire(word(i));
        }
        return sum + (long) LONG.get(0L);
    }

    static long getVolatile(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            sum += (long) LONG.getVolatile(word(i));
        }
        return sum + (long) LONG.get(0L);
    }

    static long setPlain(long count) {
        for (long i = 0; i < count; i++) {
            LONG.set(word(i), i);
        }
        return (long) LONG.get(0L);
    }

    static long setOpaque(long count) {
        for (long i = 0; i < count; i++) {
            LONG.setOpaque(word(i), i);
        }
        return (long) LONG.get(0L);
    }

    static long setRelease(long count) {
        for (long i = 0; i < count; i++) {
            LONG.setRelease(word(i), i);
        }
        return (long) LONG.get(0L);
    }

    static long setVolatile(long count) {
        for (long i = 0; i < count; i++) {
            LONG.setVolatile(word(i), i);
        }
        return (long) LONG.get(0L);
    }

    static long getAndAdd(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            sum += (long) LONG.getAndAdd(word(i), 1L);
        }
        return sum + (long) LONG.get(0L);
    }

    static long compareAndSet(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            long seen = (long) LONG.get(word(i));
            sum += LONG.compareAndSet(word(i), seen, seen + 1) ? 1 : 0;
        }
        return sum + (long) LONG.get(0L);
    }

    static long failedCompareAndSet(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            sum += LONG.compareAndSet(word(i), -1L, i) ? 1 : 0;
        }
        return sum + (long) LONG.get(0L);
    }

    static long loadLoadFence(long count) {
        for (long i = 0; i < count; i++) {
            LONG.setOpaque(word(i), i);
            VarHandle.loadLoadFence();
        }
        return (long) LONG.get(0L);
    }

    static long acquireFence(long count) {
        for (long i = 0; i < count; i++) {
            LONG.setOpaque(word(i), i);
            VarHandle.acquireFence();
        }
        return (long) LONG.get(0L);
    }

    static long storeStoreFence(long count) {
        for (long i = 0; i < count; i++) {
            LONG.setOpaque(word(i), i);
            VarHandle.storeStoreFence();
        }
        return (long) LONG.get(0L);
    }

    static long releaseFence(long count) {
        for (long i = 0; i < count; i++) {
            LONG.setOpaque(word(i), i);
            VarHandle.releaseFence();
        }
        return (long) LONG.get(0L);
    }

    static long fullFence(long count) {
        for (long i = 0; i < count; i++) {
            LONG.setOpaque(word(i), i);
            VarHandle.fullFence();
        }
        return (long) LONG.get(0L);
    }

    static long dataRelease(long count) {
        for (long i = 0; i < count; i++) {
            LONG.set(DATA + word(i), i);
            LONG.setRelease(word(i), i);
        }
        return (long) LONG.get(0L);
    }

    static long dataStoreFence(long count) {
        for (long i = 0; i < count; i++) {
            LONG.set(DATA + word(i), i);
            VarHandle.storeStoreFence();
            LONG.setOpaque(word(i), i);
        }
        return (long) LONG.get(0L);
    }

    static long dataFullFence(long count) {
        for (long i = 0; i < count; i++) {
            LONG.set(DATA + word(i), i);
            VarHandle.fullFence();
            LONG.setOpaque(word(i), i);
        }
        return (long) LONG.get(0L);
    }

    static long dataVolatile(long count) {
        for (long i = 0; i < count; i++) {
            LONG.set(DATA + word(i), i);
            LONG.setVolatile(word(i), i);
        }
        return (long) LONG.get(0L);
    }

    static long storeFenceLoad(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            LONG.setOpaque(word(i), i);
            VarHandle.fullFence();
            sum += (long) LONG.getAcquire(DATA + word(i));
        }
        return sum + (long) LONG.get(0L);
    }

    static long storeFenceOpaqueLoad(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            LONG.setOpaque(word(i), i);
            VarHandle.fullFence();
            sum += (long) LONG.getOpaque(DATA + word(i));
        }
        return sum + (long) LONG.get(0L);
    }

    static long volatileStoreLoad(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            LONG.setVolatile(word(i), i);
            sum += (long) LONG.getVolatile(DATA + word(i));
        }
        return sum + (long) LONG.get(0L);
    }

    static long dataReleasePoll(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            LONG.set(DATA + word(i), i);
            LONG.setRelease(word(i), i);
            sum += (long) LONG.getAcquire(POLLED + word(i));
        }
        return sum + (long) LONG.get(0L);
    }

    static long dataFullFencePoll(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            LONG.set(DATA + word(i), i);
            VarHandle.fullFence();
            LONG.setOpaque(word(i), i);
            sum += (long) LONG.getAcquire(POLLED + word(i));
        }
        return sum + (long) LONG.get(0L);
    }

    static long dataVolatilePoll(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            LONG.set(DATA + word(i), i);
            LONG.setVolatile(word(i), i);
            sum += (long) LONG.getAcquire(POLLED + word(i));
        }
        return sum + (long) LONG.get(0L);
    }
}
