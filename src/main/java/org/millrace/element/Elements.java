package org.millrace.element;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.DataType;

/** Writes single elements of any type, to prepare data. Shares no loop with {@link ElementKernel}. */
public final class Elements {

    private static final double TWO_TO_64 = 0x1p64;

    private Elements() {}

    /** Writes an element's bits. Bits beyond the type's size are ignored. */
    public static void setBits(DataType type, MemorySegment segment, long offset, long bits) {
        switch (type.bytes()) {
            case 1 -> segment.set(ValueLayout.JAVA_BYTE, offset, (byte) bits);
            case 2 -> segment.set(ValueLayout.JAVA_SHORT_UNALIGNED, offset, (short) bits);
            case 4 -> segment.set(ValueLayout.JAVA_INT_UNALIGNED, offset, (int) bits);
            default -> segment.set(ValueLayout.JAVA_LONG_UNALIGNED, offset, bits);
        }
    }

    /**
     * Returns the bits that represent a value, extended with zeros for unsigned integers and with the sign bit for
     * every other type. For floating-point types the value is rounded once, to nearest, ties to even. A value that is
     * too large becomes an infinity; in the 8-bit floating-point types it becomes the largest finite number.
     *
     * @throws IllegalArgumentException if the type is an integer type that does not have this value
     */
    public static long bits(DataType type, double value) {
        return switch (type) {
            case FLOAT16 -> Float.floatToFloat16(Rounding.toOdd(value));
            case FLOAT32 -> Float.floatToRawIntBits((float) value);
            case FLOAT64 -> Double.doubleToRawLongBits(value);
            case BFLOAT16 -> BFloat16.ofFloat(Rounding.toOdd(value));
            case FLOAT8_E4M3 -> Float8.E4M3.ofFloat(Rounding.toOdd(value));
            case FLOAT8_E5M2 -> Float8.E5M2.ofFloat(Rounding.toOdd(value));
            case INT8, UINT8, INT32, UINT32, INT64, UINT64 -> integer(type, value);
        };
    }

    private static long integer(DataType type, double value) {
        int bits = type.bytes() * Byte.SIZE;
        double least = isUnsigned(type) ? 0 : -Math.scalb(1.0, bits - 1);
        double end = Math.scalb(1.0, isUnsigned(type) ? bits : bits - 1);
        if (!(value >= least && value < end && value == Math.rint(value))) {
            throw new IllegalArgumentException(value + " is no " + type.label() + ": give a whole number of at least "
                    + least + " and below " + end);
        }
        return value < -(double) Long.MIN_VALUE ? (long) value : (long) (value - TWO_TO_64);
    }

    private static boolean isUnsigned(DataType type) {
        return type == DataType.UINT8 || type == DataType.UINT32 || type == DataType.UINT64;
    }

    /** Conversions between bfloat16 and binary32. A bfloat16 has the format of the upper half of a binary32. */
    static final class BFloat16 {

        /** The bits of the only NaN that CUDA uses in bfloat16. */
        private static final short NAN = 0x7fff;

        private BFloat16() {}

        /** Returns the exact value of an element as a binary32. */
        static float toFloat(short bits) {
            return Float.intBitsToFloat(bits << Short.SIZE);
        }

        /**
         * Rounds a binary32 to nearest, ties to even. A value that is too large becomes infinity. Every NaN becomes
         * CUDA's NaN.
         */
        static short ofFloat(float value) {
            return Float.isNaN(value) ? NAN : (short) (round(Float.floatToRawIntBits(value)) >>> Short.SIZE);
        }

        /**
         * Rounds the bits of a binary32 as {@link #ofFloat} does. The result is in the upper half; the lower half is
         * undefined. If the binary32 is a NaN, the lower half of its bits must be zero. The rounding then carries
         * nothing into the upper half, and the result is a NaN. The lower half is zero in a NaN that was converted from
         * bfloat16, and in the NaN of an invalid operation.
         */
        static int round(int bits) {
            return bits + 0x7fff + (bits >>> Short.SIZE & 1);
        }
    }

    /**
     * The 8-bit floats of the Open Compute Project (OFP8 specification 1.0), converted as in CUDA's
     * {@code __nv_fp8_e4m3} and {@code __nv_fp8_e5m2}. Values are rounded to nearest, ties to even. A value that is too
     * large, including infinity, becomes the largest finite number of its sign. Every NaN becomes 0x7f.
     */
    enum Float8 {
        /** 4 exponent bits, 3 fraction bits, no infinities, largest number 448. */
        E4M3(3, 7, 0x7e),
        /** 5 exponent bits, 2 fraction bits, largest number 57344. */
        E5M2(2, 15, 0x7b);

        private static final int SIGN = 0x80;
        private static final int NAN = 0x7f;

        private final int fractionBits;
        private final int bias;
        private final int largest;

        Float8(int fractionBits, int bias, int largest) {
            this.fractionBits = fractionBits;
            this.bias = bias;
            this.largest = largest;
        }

        /** Returns the exact value of an element as a binary32. */
        float toFloat(byte bits) {
            int magnitude = bits & NAN;
            int exponent = Math.max(magnitude >> fractionBits, 1);
            int significand = magnitude - (exponent - 1 << fractionBits);
            float value = Math.scalb((float) significand, exponent - bias - fractionBits);
            if (magnitude > largest) {
                value = this == E5M2 && magnitude == largest + 1 ? Float.POSITIVE_INFINITY : Float.NaN;
            }
            return bits < 0 ? -value : value;
        }

        /** Returns the bits of a value, rounded as described for {@link Float8}. */
        byte ofFloat(float value) {
            if (Float.isNaN(value)) {
                return NAN;
            }
            float magnitude = Math.abs(value);
            int exponent = Math.max(Math.getExponent(magnitude), 1 - bias);
            double significand = Math.rint(Math.scalb((double) magnitude, fractionBits - exponent));
            // The significand includes the leading one, which adds 1 to the exponent field. A carry of the rounding
            // also adds 1 to this field.
            double bits = (exponent + bias - 1 << fractionBits) + significand;
            return (byte) ((int) Math.min(bits, largest) | (Math.copySign(1, value) < 0 ? SIGN : 0));
        }
    }

    /**
     * Rounding to odd. It replaces an inexact result by one of its two neighbors, namely by the neighbor with the last
     * bit 1. In a format with two bits less, this neighbor is neither a number nor a tie. Rounding this neighbor to
     * nearest in such a format therefore equals rounding the exact value (Boldo and Melquiond, "Emulation of a FMA and
     * correctly rounded sums", 2008).
     */
    static final class Rounding {

        private Rounding() {}

        /**
         * Returns {@code x * s + y} such that rounding the result to a 16-bit format equals rounding the exact value.
         * Two roundings, to binary32 and to the 16-bit format, are wrong in one case only: the first rounding is
         * inexact, and its result is a tie for the second rounding. In this rare case, this method computes the sum
         * again from the product, which binary64 represents exactly.
         *
         * @param extraBits number of fraction bits that binary32 has and the 16-bit format lacks
         * @param least     magnitude below which a sum is always computed again. Below this magnitude, the 16-bit
         *                  format has fewer fraction bits, or binary32 cannot represent the product
         */
        static float scaleAdd(float x, float s, float y, int extraBits, float least) {
            float sum = Math.fma(x, s, y);
            float product = x * s;
            float part = sum - product;
            float error = product - (sum - part) + (y - part);
            int tie = 1 << extraBits - 1;
            int extra = Float.floatToRawIntBits(sum) & 2 * tie - 1;
            // The value of ifTie is all ones for a tie, otherwise 0. Ties are common, but inexact ties are rare. The
            // processor therefore usually predicts the only branch below correctly.
            int ifTie = (extra ^ tie) - 1 >> 31;
            if ((ifTie & Float.floatToRawIntBits(error) << 1) != 0 || Math.abs(sum) < least) {
                return toOdd(sumToOdd((double) x * s, y));
            }
            return sum;
        }

        /** Returns the sum of two numbers as a binary64, rounded to odd. */
        private static double sumToOdd(double x, double y) {
            double sum = x + y;
            double part = sum - x;
            double error = x - (sum - part) + (y - part);
            long bits = Double.doubleToRawLongBits(sum);
            // The error of an infinite sum is NaN, and so fails the comparison.
            if (!(Math.abs(error) > 0) || (bits & 1) != 0) {
                return sum;
            }
            return Double.longBitsToDouble(error > 0 == sum > 0 ? bits + 1 : bits - 1);
        }

        /** Returns a binary64 as a binary32, rounded to odd. */
        static float toOdd(double value) {
            float nearest = (float) value;
            int bits = Float.floatToRawIntBits(nearest);
            if (nearest == value || (bits & 1) != 0 || Float.isNaN(nearest)) {
                return nearest;
            }
            return Float.intBitsToFloat(Math.abs(nearest) < Math.abs(value) ? bits + 1 : bits - 1);
        }
    }
}
