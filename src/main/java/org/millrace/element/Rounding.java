package org.millrace.element;

/**
 * Rounding to odd: a result that is not exact is the one of its two neighbours whose last bit is one. No format with
 * two bits less can represent that one or take it for a tie, so that rounding the result to nearest in such a format is
 * the same as rounding what was exact (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums", 2008).
 */
final class Rounding {

    private Rounding() {}

    /**
     * {@code x * s + y} so that rounding it to a 16-bit format is the same as rounding what is exact. Rounding twice
     * goes wrong only where the first time is inexact and makes a tie for the second, which is rare. There the sum is
     * made again, of the product, which binary64 represents exactly.
     *
     * @param least sums smaller than this are always made again: the format has fewer bits there, or binary32 cannot
     *              represent the product
     */
    static float scaleAdd(float x, float s, float y, int extraBits, float least) {
        float sum = Math.fma(x, s, y);
        float product = x * s;
        float part = sum - product;
        float error = product - (sum - part) + (y - part);
        int tie = 1 << extraBits - 1;
        int extra = Float.floatToRawIntBits(sum) & 2 * tie - 1;
        // All ones for a tie. Ties are common, inexact ones are not: one condition, so that one well predicted branch
        // decides.
        int ifTie = (extra ^ tie) - 1 >> 31;
        if ((ifTie & Float.floatToRawIntBits(error) << 1) != 0 || Math.abs(sum) < least) {
            return toOdd(sumToOdd((double) x * s, y));
        }
        return sum;
    }

    /** The sum of two numbers as a binary64. */
    private static double sumToOdd(double x, double y) {
        double sum = x + y;
        double part = sum - x;
        double error = x - (sum - part) + (y - part);
        long bits = Double.doubleToRawLongBits(sum);
        // An infinite sum has NaN for its error.
        if (!(Math.abs(error) > 0) || (bits & 1) != 0) {
            return sum;
        }
        return Double.longBitsToDouble(error > 0 == sum > 0 ? bits + 1 : bits - 1);
    }

    /** A binary64 as a binary32: the same if it is one, else the neighbour whose last bit is one. */
    static float toOdd(double value) {
        float nearest = (float) value;
        int bits = Float.floatToRawIntBits(nearest);
        if (nearest == value || (bits & 1) != 0 || Float.isNaN(nearest)) {
            return nearest;
        }
        return Float.intBitsToFloat(Math.abs(nearest) < Math.abs(value) ? bits + 1 : bits - 1);
    }
}
