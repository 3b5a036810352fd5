package org.millrace.element;

/**
 * The 8-bit floats of the Open Compute Project (OFP8 specification 1.0), converted the way CUDA's {@code __nv_fp8_e4m3}
 * and {@code __nv_fp8_e5m2} are: to nearest, ties to even; what is too large, infinity too, becomes the largest finite
 * number of its sign; every NaN becomes 0x7f.
 */
enum Float8 {
    /** 4 exponent bits, 3 fraction bits, no infinities, largest 448. */
    E4M3(3, 7, 0x7e),
    /** 5 exponent bits, 2 fraction bits, largest 57344. */
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

    /** What an element stands for; exact. */
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

    /** Rounds as the type says. */
    byte ofFloat(float value) {
        if (Float.isNaN(value)) {
            return NAN;
        }
        float magnitude = Math.abs(value);
        int exponent = Math.max(Math.getExponent(magnitude), 1 - bias);
        double significand = Math.rint(Math.scalb((double) magnitude, fractionBits - exponent));
        // The significand's leading one counts as one in the exponent field; so does its carry.
        double bits = (exponent + bias - 1 << fractionBits) + significand;
        return (byte) ((int) Math.min(bits, largest) | (Math.copySign(1, value) < 0 ? SIGN : 0));
    }
}
