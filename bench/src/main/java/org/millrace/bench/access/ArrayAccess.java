package org.millrace.bench.access;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/** The accesses of {@link SegmentAccess}, to an array on the heap. */
final class ArrayAccess {

    private static final VarHandle LONG = MethodHandles.arrayElementVarHandle(long[].class);
    private static final int DATA = (int) (LineMemory.DATA / Long.BYTES);
    private static final int POLLED = (int) (LineMemory.POLLED / Long.BYTES);
    private static final long[] WORDS = new long[(int) (LineMemory.BYTES / Long.BYTES)];

    private ArrayAccess() {}

    private static int word(long i) {
        return (int) i & 7;
    }

    static long getPlain(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            sum += (long) LONG.get(WORDS, word(i));
        }
        return sum + (long) LONG.get(WORDS, 0);
    }

    static long getOpaque(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            sum += (long) LONG.getOpaque(WORDS, word(i));
        }
        return sum + (long) LONG.get(WORDS, 0);
    }

    static long getAcquire(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            sum += (long) LONG.getAcquire(WORDS, word(i));
        }
        return sum + (long) LONG.get(WORDS, 0);
    }

    static long getVolatile(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            sum += (long) LONG.getVolatile(WORDS, word(i));
        }
        return sum + (long) LONG.get(WORDS, 0);
    }

    static long setPlain(long count) {
        for (long i = 0; i < count; i++) {
            LONG.set(WORDS, word(i), i);
        }
        return (long) LONG.get(WORDS, 0);
    }

    static long setOpaque(long count) {
        for (long i = 0; i < count; i++) {
            LONG.setOpaque(WORDS, word(i), i);
        }
        return (long) LONG.get(WORDS, 0);
    }

    static long setRelease(long count) {
        for (long i = 0; i < count; i++) {
            LONG.setRelease(WORDS, word(i), i);
        }
        return (long) LONG.get(WORDS, 0);
    }

    static long setVolatile(long count) {
        for (long i = 0; i < count; i++) {
            LONG.setVolatile(WORDS, word(i), i);
        }
        return (long) LONG.get(WORDS, 0);
    }

    static long getAndAdd(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            sum += (long) LONG.getAndAdd(WORDS, word(i), 1L);
        }
        return sum + (long) LONG.get(WORDS, 0);
    }

    static long compareAndSet(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            long seen = (long) LONG.get(WORDS, word(i));
            sum += LONG.compareAndSet(WORDS, word(i), seen, seen + 1) ? 1 : 0;
        }
        return sum + (long) LONG.get(WORDS, 0);
    }

    static long failedCompareAndSet(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            sum += LONG.compareAndSet(WORDS, word(i), -1L, i) ? 1 : 0;
        }
        return sum + (long) LONG.get(WORDS, 0);
    }

    static long loadLoadFence(long count) {
        for (long i = 0; i < count; i++) {
            LONG.setOpaque(WORDS, word(i), i);
            VarHandle.loadLoadFence();
        }
        return (long) LONG.get(WORDS, 0);
    }

    static long acquireFence(long count) {
        for (long i = 0; i < count; i++) {
            LONG.setOpaque(WORDS, word(i), i);
            VarHandle.acquireFence();
        }
        return (long) LONG.get(WORDS, 0);
    }

    static long storeStoreFence(long count) {
        for (long i = 0; i < count; i++) {
            LONG.setOpaque(WORDS, word(i), i);
            VarHandle.storeStoreFence();
        }
        return (long) LONG.get(WORDS, 0);
    }

    static long releaseFence(long count) {
        for (long i = 0; i < count; i++) {
            LONG.setOpaque(WORDS, word(i), i);
            VarHandle.releaseFence();
        }
        return (long) LONG.get(WORDS, 0);
    }

    static long fullFence(long count) {
        for (long i = 0; i < count; i++) {
            LONG.setOpaque(WORDS, word(i), i);
            VarHandle.fullFence();
        }
        return (long) LONG.get(WORDS, 0);
    }

    static long dataRelease(long count) {
        for (long i = 0; i < count; i++) {
            LONG.set(WORDS, DATA + word(i), i);
            LONG.setRelease(WORDS, word(i), i);
        }
        return (long) LONG.get(WORDS, 0);
    }

    static long dataStoreFence(long count) {
        for (long i = 0; i < count; i++) {
            LONG.set(WORDS, DATA + word(i), i);
            VarHandle.storeStoreFence();
            LONG.setOpaque(WORDS, word(i), i);
        }
        return (long) LONG.get(WORDS, 0);
    }

    static long dataFullFence(long count) {
        for (long i = 0; i < count; i++) {
            LONG.set(WORDS, DATA + word(i), i);
            VarHandle.fullFence();
            LONG.setOpaque(WORDS, word(i), i);
        }
        return (long) LONG.get(WORDS, 0);
    }

    static long dataVolatile(long count) {
        for (long i = 0; i < count; i++) {
            LONG.set(WORDS, DATA + word(i), i);
            LONG.setVolatile(WORDS, word(i), i);
        }
        return (long) LONG.get(WORDS, 0);
    }

    static long storeFenceLoad(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            LONG.setOpaque(WORDS, word(i), i);
            VarHandle.fullFence();
            sum += (long) LONG.getAcquire(WORDS, DATA + word(i));
        }
        return sum + (long) LONG.get(WORDS, 0);
    }

    static long storeFenceOpaqueLoad(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            LONG.setOpaque(WORDS, word(i), i);
            VarHandle.fullFence();
            sum += (long) LONG.getOpaque(WORDS, DATA + word(i));
        }
        return sum + (long) LONG.get(WORDS, 0);
    }

    static long volatileStoreLoad(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            LONG.setVolatile(WORDS, word(i), i);
            sum += (long) LONG.getVolatile(WORDS, DATA + word(i));
        }
        return sum + (long) LONG.get(WORDS, 0);
    }

    static long dataReleasePoll(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            LONG.set(WORDS, DATA + word(i), i);
            LONG.setRelease(WORDS, word(i), i);
            sum += (long) LONG.getAcquire(WORDS, POLLED + word(i));
        }
        return sum + (long) LONG.get(WORDS, 0);
    }

    static long dataFullFencePoll(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            LONG.set(WORDS, DATA + word(i), i);
            VarHandle.fullFence();
            LONG.setOpaque(WORDS, word(i), i);
            sum += (long) LONG.getAcquire(WORDS, POLLED + word(i));
        }
        return sum + (long) LONG.get(WORDS, 0);
    }

    static long dataVolatilePoll(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            LONG.set(WORDS, DATA + word(i), i);
            LONG.setVolatile(WORDS, word(i), i);
            sum += (long) LONG.getAcquire(WORDS, POLLED + word(i));
        }
        return sum + (long) LONG.get(WORDS, 0);
    }
}
