package org.millrace.proxy;

/** Arithmetic of step counters. A counter only grows, wraps after 2<sup>64</sup>, and is compared by difference. */
public final class Steps {

    private Steps() {}

    /**
     * {@return whether a counter is at a step or past it; correct across any wrap as long as the two are less than
     * 2<sup>63</sup> apart}
     */
    public static boolean reached(long counter, long step) {
        return counter - step >= 0;
    }

    /**
     * {@return a step rounded up to a multiple} Operations with several steps per chunk begin there, so that a chunk
     * never wraps in the middle of a slice.
     *
     * @param multiple a power of two
     */
    public static long roundUp(long step, int multiple) {
        return (step + multiple - 1) & -(long) multiple;
    }
}
