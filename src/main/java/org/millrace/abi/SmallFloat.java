package org.millrace.abi;

/**
 * NCCL's {@code u32fp8}: a size in 8 bits, rounded down to 4 significant ones: 3 bits of mantissa below an exponent of
 * 5 bits. Facts: NCCL 2.28 {@code bitops.h}.
 */
public final class SmallFloat {

    private static final int MANTISSA_BITS = 3;
    private static final int MANTISSA_MASK = (1 << MANTISSA_BITS) - 1;

    private SmallFloat() {}

    /**
     * {@return the 8 bits}
     *
     * @param value an unsigned number of 32 bits
     */
    public static int encode(int value) {
        int log2 = 31 - Integer.numberOfLeadingZeros(value | 1);
        int exponent = Math.max(0, log2 - (MANTISSA_BITS - 1));
        int mantissa = value >>> Math.max(0, log2 - MANTISSA_BITS) & MANTISSA_MASK;
        return exponent << MANTISSA_BITS | mantissa;
    }

    /**
     * {@return the size, an unsigned number of 32 bits}
     *
     * @param bits 8 of them
     */
    public static int decode(int bits) {
        int exponent = bits >>> MANTISSA_BITS;
        int mantissa = bits & MANTISSA_MASK;
        return exponent == 0 ? mantissa : (mantissa | 1 << MANTISSA_BITS) << exponent - 1;
    }
}
