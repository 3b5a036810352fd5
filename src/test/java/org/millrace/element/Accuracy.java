package org.millrace.element;

import org.millrace.DataType;

/** Distances between adjacent numbers of a type, and bounds of rounding errors. */
public final class Accuracy {

    private Accuracy() {}

    /**
     * Returns the largest possible error of a result. The arguments are the number of roundings and the largest
     * magnitude of the rounded values. Each rounding adds half a unit in the last place, and slightly more where NCCL
     * rounds twice. Returns 0 for integers.
     */
    public static double tolerance(DataType type, double magnitude, int roundings) {
        double once = switch (type) {
            // NCCL rounds an 8-bit float twice, first to binary16.
            case FLOAT8_E4M3, FLOAT8_E5M2 -> ulp(type, magnitude) + ulp(DataType.FLOAT16, magnitude);
            default -> ulp(type, magnitude);
        };
        return roundings * once / 2;
    }

    /**
     * Returns the unit in the last place: the distance between the numbers of a type around a value. It is a power of
     * two, or 0 for integers, which are exact.
     */
    public static double ulp(DataType type, double value) {
        return switch (type) {
            case FLOAT16 -> ulp(value, 10, -14);
            case FLOAT32 -> ulp(value, 23, -126);
            case FLOAT64 -> Math.ulp(value);
            case BFLOAT16 -> ulp(value, 7, -126);
            case FLOAT8_E4M3 -> ulp(value, 3, -6);
            case FLOAT8_E5M2 -> ulp(value, 2, -14);
            case INT8, UINT8, INT32, UINT32, INT64, UINT64 -> 0;
        };
    }

    private static double ulp(double value, int fractionBits, int leastExponent) {
        return Math.scalb(1.0, Math.max(Math.getExponent(value), leastExponent) - fractionBits);
    }
}
