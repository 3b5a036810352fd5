package org.millrace.device.arithmetic;

/** The integer types: sums and products wrap around, as in C's unsigned arithmetic. */
final class IntegerFunctions {

    private IntegerFunctions() {}

    /**
     * For 8 and 32 bits: {@code mask} has the bits of an element. Unsigned 8-bit elements arrive with their sign too,
     * see {@link Representation#BYTE}.
     */
    static ElementFunction.OfInt ofInt(Step step, boolean signed, int mask) {
        int bias = signed ? 0 : ~(mask >>> 1);
        return switch (step) {
            case ADD -> (x, y, s) -> x + y;
            case MULTIPLY -> (x, y, s) -> x * y;
            case MINIMUM -> (x, y, s) -> Math.min(x ^ bias, y ^ bias) ^ bias;
            case MAXIMUM -> (x, y, s) -> Math.max(x ^ bias, y ^ bias) ^ bias;
            case SCALE -> (x, y, s) -> x * s;
            case SCALE_ADD -> (x, y, s) -> x * s + y;
            case DIVIDE -> signed ? (x, y, s) -> x / s : (x, y, s) -> Integer.divideUnsigned(x & mask, s);
        };
    }

    /** For 64 bits. */
    static ElementFunction.OfLong ofLong(Step step, boolean signed) {
        long bias = signed ? 0 : Long.MIN_VALUE;
        return switch (step) {
            case ADD -> (x, y, s) -> x + y;
            case MULTIPLY -> (x, y, s) -> x * y;
            case MINIMUM -> (x, y, s) -> Math.min(x ^ bias, y ^ bias) ^ bias;
            case MAXIMUM -> (x, y, s) -> Math.max(x ^ bias, y ^ bias) ^ bias;
            case SCALE -> (x, y, s) -> x * s;
            case SCALE_ADD -> (x, y, s) -> x * s + y;
            case DIVIDE -> signed ? (x, y, s) -> x / s : (x, y, s) -> Long.divideUnsigned(x, s);
        };
    }
}
