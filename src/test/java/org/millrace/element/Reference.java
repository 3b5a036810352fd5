package org.millrace.element;

import java.math.BigInteger;
import org.millrace.DataType;
import org.millrace.element.Loops.Step;

/**
 * A second implementation of the arithmetic. It is slow and follows the definitions: it computes exact numbers, and
 * {@link Format} rounds them. It shares only the names of {@link Step} with the code under test.
 */
final class Reference {

    private Reference() {}

    /**
     * Returns the result of one step on two elements, given as bits. The scalar is also given as bits, but for
     * {@link Step#DIVIDE} as a number.
     */
    static long apply(DataType type, Step step, long x, long y, long scalar) {
        return type.isFloating() ? applyFloating(type, step, x, y, scalar) : applyInteger(type, step, x, y, scalar);
    }

    private static long applyInteger(DataType type, Step step, long x, long y, long scalar) {
        BigInteger a = integer(type, x);
        BigInteger b = integer(type, y);
        BigInteger result = switch (step) {
            case ADD -> a.add(b);
            case MULTIPLY -> a.multiply(b);
            case MINIMUM -> a.min(b);
            case MAXIMUM -> a.max(b);
            case SCALE -> a.multiply(integer(type, scalar));
            case SCALE_ADD -> a.multiply(integer(type, scalar)).add(b);
            case DIVIDE -> a.divide(BigInteger.valueOf(scalar));
            case ONE_NAN -> throw new IllegalArgumentException("no integer is a NaN");
        };
        return integer(type, result.longValue()).longValue();
    }

    private static BigInteger integer(DataType type, long bits) {
        BigInteger size = BigInteger.TWO.pow(8 * type.bytes());
        BigInteger unsigned = BigInteger.valueOf(bits).mod(size);
        boolean signed = type == DataType.INT8 || type == DataType.INT32 || type == DataType.INT64;
        return signed && unsigned.testBit(8 * type.bytes() - 1) ? unsigned.subtract(size) : unsigned;
    }

    private static long applyFloating(DataType type, Step step, long x, long y, long scalar) {
        Format format = Format.of(type);
        return switch (step) {
            case ADD -> sum(format, x, y);
            case MULTIPLY -> product(format, x, y);
            case MINIMUM -> least(format, x, y, 1);
            case MAXIMUM -> least(format, x, y, -1);
            case SCALE -> product(format, x, scalar);
            // with 8 bits, the product is rounded before the addition
            case SCALE_ADD ->
                type.bytes() == 1 ? sum(format, product(format, x, scalar), y) : fused(format, x, scalar, y);
            case DIVIDE -> throw new IllegalArgumentException("floats are not divided");
            case ONE_NAN -> Double.isNaN(format.toDouble(x)) ? -1L >>> 1 + Long.SIZE - 8 * type.bytes() : x;
        };
    }

    private static long sum(Format format, long x, long y) {
        double a = format.toDouble(x);
        double b = format.toDouble(y);
        // For infinities, NaNs and zero sums, addition of doubles has the right result for every format.
        return Double.isFinite(a) && Double.isFinite(b) && a + b != 0 ? format.round(Dyadic.of(a).plus(Dyadic.of(b)))
                : format.special(a + b);
    }

    private static long product(Format format, long x, long y) {
        double a = format.toDouble(x);
        double b = format.toDouble(y);
        return Double.isFinite(a) && Double.isFinite(b) && a != 0 && b != 0
                ? format.round(Dyadic.of(a).times(Dyadic.of(b)))
                : format.special(a * b);
    }

    private static long fused(Format format, long x, long scalar, long y) {
        double a = format.toDouble(x);
        double s = format.toDouble(scalar);
        double b = format.toDouble(y);
        if (Double.isFinite(a) && Double.isFinite(s) && Double.isFinite(b)) {
            Dyadic exact = Dyadic.of(a).times(Dyadic.of(s)).plus(Dyadic.of(b));
            if (exact.significand().signum() != 0) {
                return format.round(exact);
            }
        }
        return format.special(Math.fma(a, s, b));
    }

    private static long least(Format format, long x, long y, int direction) {
        double a = format.toDouble(x);
        double b = format.toDouble(y);
        boolean first = Double.isNaN(b) || !Double.isNaN(a) && direction * Double.compare(a, b) <= 0;
        double least = first ? a : b;
        return Double.isFinite(least) && least != 0 ? format.round(Dyadic.of(least)) : format.special(least);
    }

    /** The exact number {@code significand * 2^exponent}. */
    record Dyadic(BigInteger significand, int exponent) {

        static Dyadic of(double value) {
            long bits = Double.doubleToLongBits(value);
            int exponent = (int) (bits >>> 52) & 0x7ff;
            long fraction = bits & (1L << 52) - 1;
            BigInteger magnitude = BigInteger.valueOf(exponent == 0 ? fraction : fraction | 1L << 52);
            return new Dyadic(bits < 0 ? magnitude.negate() : magnitude, Math.max(exponent, 1) - 1075);
        }

        Dyadic plus(Dyadic other) {
            int least = Math.min(exponent, other.exponent);
            return new Dyadic(
                    significand.shiftLeft(exponent - least).add(other.significand.shiftLeft(other.exponent - least)),
                    least);
        }

        Dyadic times(Dyadic other) {
            return new Dyadic(significand.multiply(other.significand), exponent + other.exponent);
        }
    }

    /**
     * A binary floating-point format.
     *
     * @param exponentBits width of the exponent
     * @param fractionBits width of the fraction
     * @param largest      bits of the largest finite number
     * @param nan          bits of a result that is a NaN
     * @param saturates    whether a value is rounded to binary16 first, and a value that is too large becomes the
     *                     largest number
     */
    record Format(int exponentBits, int fractionBits, long largest, long nan, boolean saturates) {

        private static final Format BINARY16 = new Format(5, 10, 0x7bff, 0x7fff, false);

        static Format of(DataType type) {
            return switch (type) {
                case FLOAT16 -> BINARY16;
                case BFLOAT16 -> new Format(8, 7, 0x7f7f, 0x7fff, false);
                case FLOAT32 -> new Format(8, 23, 0x7f7f_ffff, 0x7fff_ffff, false);
                case FLOAT64 -> new Format(11, 52, 0x7fef_ffff_ffff_ffffL, 0x7ff8_0000_0000_0000L, false);
                case FLOAT8_E4M3 -> new Format(4, 3, 0x7e, 0x7f, true);
                case FLOAT8_E5M2 -> new Format(5, 2, 0x7b, 0x7f, true);
                default -> throw new IllegalArgumentException(type + " is no float");
            };
        }

        private int bias() {
            return (1 << exponentBits - 1) - 1;
        }

        double toDouble(long bits) {
            long magnitude = bits & (1L << exponentBits + fractionBits) - 1;
            double sign = (bits >>> exponentBits + fractionBits & 1) != 0 ? -1 : 1;
            if (magnitude > largest) {
                boolean infinite = magnitude == largest + 1 && exponentBits != 4;
                return infinite ? sign * Double.POSITIVE_INFINITY : Double.NaN;
            }
            int exponent = (int) (magnitude >>> fractionBits);
            long fraction = magnitude & (1L << fractionBits) - 1;
            long significand = exponent == 0 ? fraction : fraction | 1L << fractionBits;
            return sign * significand * Math.pow(2, Math.max(exponent, 1) - bias() - fractionBits);
        }

        /** Returns the bits of a NaN, an infinity or a zero. */
        long special(double value) {
            long sign = Math.copySign(1, value) < 0 ? 1L << exponentBits + fractionBits : 0;
            if (Double.isNaN(value)) {
                return nan;
            }
            return value == 0 ? sign : sign | (saturates ? largest : largest + 1);
        }

        /** Returns the bits of the nearest number, with ties to even. The argument must not be zero. */
        long round(Dyadic exact) {
            Dyadic value = exact;
            if (saturates) {
                double half = BINARY16.toDouble(BINARY16.round(exact));
                if (half == 0 || Double.isInfinite(half)) {
                    return special(half);
                }
                value = Dyadic.of(half);
            }
            BigInteger magnitude = value.significand.abs();
            int leading = magnitude.bitLength() - 1 + value.exponent;
            int last = Math.max(leading, 1 - bias()) - fractionBits;
            BigInteger[] parts =
                    last >= value.exponent ? magnitude.divideAndRemainder(BigInteger.TWO.pow(last - value.exponent))
                            : new BigInteger[] {magnitude.shiftLeft(value.exponent - last), BigInteger.ZERO};
            BigInteger rounded = parts[0];
            int tie =
                    last >= value.exponent ? parts[1].shiftLeft(1).compareTo(BigInteger.TWO.pow(last - value.exponent))
                            : -1;
            if (tie > 0 || tie == 0 && rounded.testBit(0)) {
                rounded = rounded.add(BigInteger.ONE);
            }
            long sign = value.significand.signum() < 0 ? 1L << exponentBits + fractionBits : 0;
            // The leading one of a normal number adds one to the exponent field. A carry out of the fraction also adds
            // one.
            BigInteger bits = BigInteger.valueOf(last + fractionBits + bias() - 1).shiftLeft(fractionBits).add(rounded);
            return sign | bits.min(BigInteger.valueOf(saturates ? largest : largest + 1)).longValue();
        }
    }
}
