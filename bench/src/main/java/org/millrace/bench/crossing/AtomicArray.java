package org.millrace.bench.crossing;

import java.util.concurrent.atomic.AtomicLongArray;

/** {@link AtomicLongArray}, the older alternative in Java. */
final class AtomicArray {

    private final AtomicLongArray words = new AtomicLongArray(8);

    long getAcquire(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            sum += words.getAcquire((int) i & 7);
        }
        return sum;
    }

    long setRelease(long count) {
        for (long i = 0; i < count; i++) {
            words.setRelease((int) i & 7, i);
        }
        return count;
    }

    long getAndAdd(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            sum += words.getAndAdd((int) i & 7, 1L);
        }
        return sum;
    }
}
