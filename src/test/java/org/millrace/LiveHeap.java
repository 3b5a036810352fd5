package org.millrace;

import static org.junit.jupiter.api.Assertions.assertTrue;

/** Bytes of the heap in use, for tests that look for objects that stay reachable. */
public final class LiveHeap {

    private static final int ATTEMPTS = 20;

    private LiveHeap() {}

    /**
     * Returns the bytes in use after a garbage collection. The result includes garbage that other threads have made
     * since the collection.
     */
    public static long bytes() {
        System.gc();
        return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
    }

    /**
     * Checks that the heap has grown by less than the given number of bytes. If it has grown by more, measures again.
     * Garbage of other threads can disappear from a later measurement, but reachable objects cannot.
     */
    public static void assertGrowsByLessThan(long bytes, long before) {
        long after = bytes();
        for (int attempt = 1; attempt < ATTEMPTS && after - before >= bytes; attempt++) {
            after = bytes();
        }
        long last = after;
        assertTrue(last - before < bytes, () -> "live bytes grew from " + before + " to " + last);
    }
}
