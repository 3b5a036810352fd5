package org.millrace.element;

/** Conversions between bfloat16, the upper half of a binary32, and binary32. */
final class BFloat16 {

    /** CUDA's NaN. */
    private static final short NAN = 0x7fff;

    private BFloat16() {}

    /** What an element stands for; exact. */
    static float toFloat(short bits) {
        return Float.intBitsToFloat(bits << Short.SIZE);
    }

    /** Rounds to nearest, ties to even, overflow to infinity. Every NaN becomes CUDA's. */
    static short ofFloat(float value) {
        return Float.isNaN(value) ? NAN : (short) (round(Float.floatToRawIntBits(value)) >>> Short.SIZE);
    }

    /**
     * The same from a binary32's bits, in the upper half of the result; the lower is undefined. A NaN stays one if it
     * came from a bfloat16 or from an operation that has no result: the lower half of its bits is zero then, and
     * rounding carries nothing into the upper.
     */
    static int round(int bits) {
        return bits + 0x7fff + (bits >>> Short.SIZE & 1);
    }
}
