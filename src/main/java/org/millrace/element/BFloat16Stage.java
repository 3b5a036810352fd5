package org.millrace.element;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * A thread's arrays in which a block of bfloat16 is computed as binary32.
 *
 * <p>
 * HotSpot (to JDK 25 at least) has no vector form for widening 16-bit integers, nor for reinterpreting an integer as a
 * float. So elements are loaded in pairs, as 32-bit integers; the upper ones of all pairs become the first half of the
 * array, the lower ones the second; and the integers are stored to the memory of an array of floats. All of that is
 * vectorized, and three times as fast as converting one element at a time.
 */
final class BFloat16Stage {

    private static final ValueLayout.OfShort SHORT = ValueLayout.JAVA_SHORT_UNALIGNED;
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;
    private static final int UPPER = 0xffff_0000;
    private static final ThreadLocal<BFloat16Stage> STAGES = ThreadLocal.withInitial(BFloat16Stage::new);

    /** This rank's elements, and then the results. */
    final float[] x = new float[Loop.BLOCK_BYTES / Short.BYTES];
    /** The received elements, in the same order. */
    final float[] y = new float[x.length];
    private final MemorySegment xBits = MemorySegment.ofArray(x);
    private final MemorySegment yBits = MemorySegment.ofArray(y);

    private BFloat16Stage() {}

    static BFloat16Stage ofThisThread() {
        return STAGES.get();
    }

    void load(MemorySegment xSource, long xAt, MemorySegment ySource, long yAt, int count) {
        load(xSource, xAt, xBits, count);
        load(ySource, yAt, yBits, count);
    }

    private static void load(MemorySegment source, long at, MemorySegment floats, int count) {
        int pairs = count / 2;
        loadUpper(source, at, floats, pairs);
        loadLower(source, at, floats, pairs);
        if (count % 2 != 0) {
            floats.set(INT, 8L * pairs, source.get(SHORT, at + 4L * pairs) << Short.SIZE);
        }
    }

    private static void loadUpper(MemorySegment source, long at, MemorySegment floats, int pairs) {
        for (int i = 0; i < pairs; i++) {
            floats.set(INT, 4L * i, source.get(INT, at + 4L * i) & UPPER);
        }
    }

    private static void loadLower(MemorySegment source, long at, MemorySegment floats, int pairs) {
        long lower = 4L * pairs;
        for (int i = 0; i < pairs; i++) {
            floats.set(INT, lower + 4L * i, source.get(INT, at + 4L * i) << Short.SIZE);
        }
    }

    /** Rounds the results to nearest and stores them. */
    void store(MemorySegment destination, long at, int count) {
        int pairs = count / 2;
        storePairs(xBits, destination, at, pairs);
        if (count % 2 != 0) {
            destination.set(SHORT, at + 4L * pairs, BFloat16.ofFloat(x[2 * pairs]));
        }
    }

    private static void storePairs(MemorySegment floats, MemorySegment destination, long at, int pairs) {
        long lower = 4L * pairs;
        for (int i = 0; i < pairs; i++) {
            destination.set(INT, at + 4L * i, BFloat16.round(floats.get(INT, 4L * i)) & UPPER
                    | BFloat16.round(floats.get(INT, lower + 4L * i)) >>> Short.SIZE);
        }
    }
}
