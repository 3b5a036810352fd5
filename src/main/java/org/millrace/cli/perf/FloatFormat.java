package org.millrace.cli.perf;

import org.millrace.DataType;

/**
 * Encoding of a floating-point type's elements. This class shares no code with the reductions of the emulated device. A
 * mistake in shared code would change a result and the expected result in the same way.
 */
enum FloatFormat {
    BINARY16(2, 0x1p-11, 0x1p-24) {
        @Override
        double decode(long bits) {
            return Float.float16ToFloat((short) bits);
        }

        @Override
        long encode(double value) {
            return Float.floatToFloat16((float) value);
        }
    },
    BINARY32(4, 0x1p-24, 0x1p-149) {
        @Override
        double decode(long bits) {
            return Float.intBitsToFloat((int) bits);
        }

        @Override
        long encode(double value) {
            return Float.floatToRawIntBits((float) value);
        }
    },
    BINARY64(8, 0x1p-53, 0x1p-1074) {
        @Override
        double decode(long bits) {
            return Double.longBitsToDouble(bits);
        }

        @Override
        long encode(double value) {
            return Double.doubleToRawLongBits(value);
        }
    },
    /** {@link DataType#BFLOAT16}: the upper half of a binary32. */
    BFLOAT16(2, 0x1p-8, 0x1p-133) {
        @Override
        double decode(long bits) {
            return Float.intBitsToFloat((int) bits << 16);
        }

        @Override
        long encode(double value) {
            return Float.floatToRawIntBits((float) value) >>> 16;
        }
    },
    /**
     * {@link DataType#FLOAT8_E4M3}. Exponents are biased by 7. NaN has all bits set except the sign (OCP 8-bit Floating
     * Point Specification 1.0).
     */
    E4M3(1, 0x1p-4, 0x1p-9) {
        @Override
        double decode(long bits) {
            int exponent = (int) bits >> 3 & 0xF;
            int fraction = (int) bits & 0x7;
            double magnitude = (bits & 0x7F) == 0x7F ? Double.NaN
                    : exponent == 0 ? fraction * 0x1p-9 : Math.scalb(8 + fraction, exponent - 10);
            return (bits & 0x80) == 0 ? magnitude : -magnitude;
        }

        @Override
        long encode(double value) {
            int exponent = Math.getExponent(value);
            long fraction = (long) Math.scalb(Math.abs(value), 3 - exponent) & 0x7;
            return (value < 0 ? 0x80 : 0) | exponent + 7 << 3 | fraction;
        }
    },
    /** {@link DataType#FLOAT8_E5M2}: the upper half of a binary16. */
    E5M2(1, 0x1p-3, 0x1p-16) {
        @Override
        double decode(long bits) {
            return Float.float16ToFloat((short) (bits << 8));
        }

        @Override
        long encode(double value) {
            return Float.floatToFloat16((float) value) >>> 8;
        }
    };

    private final int bytes;
    private final double roundoff;
    private final double smallest;

    FloatFormat(int bytes, double roundoff, double smallest) {
        this.bytes = bytes;
        this.roundoff = roundoff;
        this.smallest = smallest;
    }

    static FloatFormat of(DataType type) {
        return switch (type) {
            case FLOAT16 -> BINARY16;
            case FLOAT32 -> BINARY32;
            case FLOAT64 -> BINARY64;
            case BFLOAT16 -> BFLOAT16;
            case FLOAT8_E4M3 -> E4M3;
            case FLOAT8_E5M2 -> E5M2;
            default -> throw new IllegalArgumentException(type + " is not a floating-point type");
        };
    }

    abstract double decode(long bits);

    /** Returns the bits of a number that is normal and exact in this format. */
    abstract long encode(double value);

    int bytes() {
        return bytes;
    }

    /** Returns the largest relative error of one rounding: half the distance between 1 and the next larger number. */
    double roundoff() {
        return roundoff;
    }

    /**
     * Returns the smallest number above zero. Half of this number is the largest rounding error of results near zero.
     */
    double smallest() {
        return smallest;
    }
}
