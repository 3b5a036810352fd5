package org.millrace.element;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.DataType;

/** Reads single elements of any type, to check results, and writes them by their values. */
final class ElementValues {

    private ElementValues() {}

    /**
     * Returns an element's value. 64-bit integers beyond 2<sup>53</sup> are rounded to nearest; {@link #getBits}
     * returns them exactly.
     */
    static double get(DataType type, MemorySegment segment, long offset) {
        return value(type, getBits(type, segment, offset));
    }

    /**
     * Writes an element, rounded as in {@link Elements#bits}.
     *
     * @throws IllegalArgumentException if the type is an integer type that cannot represent this value
     */
    static void set(DataType type, MemorySegment segment, long offset, double value) {
        Elements.setBits(type, segment, offset, Elements.bits(type, value));
    }

    /**
     * Returns an element's bits, extended with zeros for unsigned integers and with the sign bit for every other type.
     * For an integer type the result is the element's value.
     */
    static long getBits(DataType type, MemorySegment segment, long offset) {
        long bits = switch (type.bytes()) {
            case 1 -> segment.get(ValueLayout.JAVA_BYTE, offset);
            case 2 -> segment.get(ValueLayout.JAVA_SHORT_UNALIGNED, offset);
            case 4 -> segment.get(ValueLayout.JAVA_INT_UNALIGNED, offset);
            default -> segment.get(ValueLayout.JAVA_LONG_UNALIGNED, offset);
        };
        return isUnsigned(type) ? bits & mask(type) : bits;
    }

    /**
     * Returns the value that the bits represent, rounded to nearest if it is a 64-bit integer beyond 2<sup>53</sup>.
     */
    static double value(DataType type, long bits) {
        return switch (type) {
            case INT8 -> (byte) bits;
            case INT32 -> (int) bits;
            case INT64 -> bits;
            case UINT8, UINT32 -> bits & mask(type);
            // Half of the value fits into a long. The bit that is shifted out can only decide a tie, so it is or-ed in.
            case UINT64 -> bits >= 0 ? bits : 2.0 * (bits >>> 1 | bits & 1);
            case FLOAT16 -> Float.float16ToFloat((short) bits);
            case FLOAT32 -> Float.intBitsToFloat((int) bits);
            case FLOAT64 -> Double.longBitsToDouble(bits);
            case BFLOAT16 -> Elements.BFloat16.toFloat((short) bits);
            case FLOAT8_E4M3 -> Elements.Float8.E4M3.toFloat((byte) bits);
            case FLOAT8_E5M2 -> Elements.Float8.E5M2.toFloat((byte) bits);
        };
    }

    private static boolean isUnsigned(DataType type) {
        return type.name().startsWith("UINT");
    }

    private static long mask(DataType type) {
        return -1L >>> Long.SIZE - type.bytes() * Byte.SIZE;
    }
}
