package org.millrace.element;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.DataType;

/**
 * Single elements of any type: reading and writing. For preparing data and checking results; it shares no loop with the
 * kernels.
 */
public final class Elements {

    private static final double TWO_TO_64 = 0x1p64;

    private Elements() {}

    /**
     * An element's value; 64-bit integers beyond 2<sup>53</sup> are rounded to nearest, use {@link #getBits} for those.
     */
    public static double get(DataType type, MemorySegment segment, long offset) {
        return value(type, getBits(type, segment, offset));
    }

    /**
     * Writes an element, rounded as {@link #bits} rounds.
     *
     * @throws IllegalArgumentException if the type is an integer type that does not have this value
     */
    public static void set(DataType type, MemorySegment segment, long offset, double value) {
        setBits(type, segment, offset, bits(type, value));
    }

    /**
     * An element's bits, extended with zeros for unsigned integers and with the sign bit for every other type: for an
     * integer type this is its value.
     */
    public static long getBits(DataType type, MemorySegment segment, long offset) {
        long bits = switch (type.bytes()) {
            case 1 -> segment.get(ValueLayout.JAVA_BYTE, offset);
            case 2 -> segment.get(ValueLayout.JAVA_SHORT_UNALIGNED, offset);
            case 4 -> segment.get(ValueLayout.JAVA_INT_UNALIGNED, offset);
            default -> segment.get(ValueLayout.JAVA_LONG_UNALIGNED, offset);
        };
        return isUnsigned(type) ? bits & mask(type) : bits;
    }

    /** Writes an element's bits; those beyond the type's size are ignored. */
    public static void setBits(DataType type, MemorySegment segment, long offset, long bits) {
        switch (type.bytes()) {
            case 1 -> segment.set(ValueLayout.JAVA_BYTE, offset, (byte) bits);
            case 2 -> segment.set(ValueLayout.JAVA_SHORT_UNALIGNED, offset, (short) bits);
            case 4 -> segment.set(ValueLayout.JAVA_INT_UNALIGNED, offset, (int) bits);
            default -> segment.set(ValueLayout.JAVA_LONG_UNALIGNED, offset, bits);
        }
    }

    /** The value that bits stand for, rounded to nearest if it is a 64-bit integer beyond 2<sup>53</sup>. */
    public static double value(DataType type, long bits) {
        return switch (type) {
            case INT8 -> (byte) bits;
            case INT32 -> (int) bits;
            case INT64 -> bits;
            case UINT8, UINT32 -> bits & mask(type);
            // Half of it fits; the bit shifted out can only decide a tie, and is kept for that.
            case UINT64 -> bits >= 0 ? bits : 2.0 * (bits >>> 1 | bits & 1);
            case FLOAT16 -> Float.float16ToFloat((short) bits);
            case FLOAT32 -> Float.intBitsToFloat((int) bits);
            case FLOAT64 -> Double.longBitsToDouble(bits);
            case BFLOAT16 -> BFloat16.toFloat((short) bits);
            case FLOAT8_E4M3 -> Float8.E4M3.toFloat((byte) bits);
            case FLOAT8_E5M2 -> Float8.E5M2.toFloat((byte) bits);
        };
    }

    /**
     * The bits that stand for a value, as {@link #getBits} returns them: for floats rounded once, to nearest, ties to
     * even. What is too large becomes an infinity, in the 8-bit types the largest finite number.
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

    private static long mask(DataType type) {
        return -1L >>> Long.SIZE - type.bytes() * Byte.SIZE;
    }
}
