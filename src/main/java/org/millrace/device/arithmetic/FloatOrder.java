package org.millrace.device.arithmetic;

/**
 * The smaller and the larger of two floats, found on their bits: a NaN loses against any number, and -0 is smaller than
 * +0. (Java's {@code min} lets NaN win.)
 *
 * <p>
 * A float's bits, read as an integer, are in order but for negative ones, which run backwards: they are turned around.
 * Then the integers run from the negative NaNs over minus infinity to infinity and the positive NaNs; taking the number
 * of negative NaNs away wraps them around to the top, and every NaN is larger than every number. The larger of two is
 * the smaller of both negated. All this is integer arithmetic without branches, which HotSpot turns into vector
 * instructions; a comparison of floats and a choice it does not.
 */
final class FloatOrder {

    private FloatOrder() {}

    /** For binary32, and for 16-bit formats in the upper half of 32 bits; {@code infinity} by its bits. */
    static ElementFunction.OfInt ofInt(Step step, int infinity) {
        int nans = Integer.MAX_VALUE - infinity;
        int sign = step == Step.MAXIMUM ? Integer.MIN_VALUE : 0;
        return (x, y, s) -> bits(Math.min(order(x ^ sign, nans), order(y ^ sign, nans)), nans) ^ sign;
    }

    private static int order(int bits, int nans) {
        return (bits ^ bits >> 31 & Integer.MAX_VALUE) - nans;
    }

    private static int bits(int order, int nans) {
        int turned = order + nans;
        return turned ^ turned >> 31 & Integer.MAX_VALUE;
    }

    /** For binary64. */
    static ElementFunction.OfLong ofLong(Step step) {
        long sign = step == Step.MAXIMUM ? Long.MIN_VALUE : 0;
        return (x, y, s) -> bits(Math.min(order(x ^ sign), order(y ^ sign))) ^ sign;
    }

    private static final long NANS = Long.MAX_VALUE - Double.doubleToLongBits(Double.POSITIVE_INFINITY);

    private static long order(long bits) {
        return (bits ^ bits >> 63 & Long.MAX_VALUE) - NANS;
    }

    private static long bits(long order) {
        long turned = order + NANS;
        return turned ^ turned >> 63 & Long.MAX_VALUE;
    }
}
