package org.millrace.proxy;

/** Arithmetic of step counters. A counter only grows, wraps after 2<sup>64</sup>, and is compared by difference. */
public final class Steps {

    private Steps() {}

    /**
     * Whether a counter has come as far as a step; right across any wrap as long as the two are less than
     * 2<sup>63</sup> apart.
     *
     * @param counter what was read
     * @param step    what is waited for
     * @return true if {@code counter} is at {@code step} or past it
     */
    public static boolean reached(long counter, long step) {
        return counter - step >= 0;
    }

    /**
     * The first multiple at or after a step. Operations of several steps a chunk begin there, so that a chunk never
     * wraps in the middle of a slice.
     *
     * @param step     any step
     * @param multiple a power of two
     * @return {@code step} rounded up
     */
    public static long roundUp(long step, int multiple) {
        return (step + multiple - 1) & -(long) multiple;
    }
}
