package org.millrace.proxy.spi;

/** Arithmetic of step counters. A counter only grows, wraps after 2<sup>64</sup>, and is compared by difference. */
public final class Steps {

    private Steps() {}

    /**
     * {@return whether a counter has the value of a step or a later value} The result is correct across a wrap, if the
     * two values differ by less than 2<sup>63</sup>.
     */
    public static boolean reached(long counter, long step) {
        return counter - step >= 0;
    }

    /**
     * {@return a step rounded up to a multiple} An operation with several steps per chunk begins at a multiple of this
     * number of steps, so that no slice wraps around the end of the ring of slots.
     *
     * @param multiple the result is a multiple of this number, which is a power of two
     */
    public static long roundUp(long step, int multiple) {
        return (step + multiple - 1) & -(long) multiple;
    }
}
