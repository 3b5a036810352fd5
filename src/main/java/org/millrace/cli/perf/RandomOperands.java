package org.millrace.cli.perf;

/**
 * Source of the random bits of operands. Every rank can compute the bits of every element of every rank, in any order.
 *
 * @param seed seed, different for every checked operation
 */
public record RandomOperands(long seed) {

    private static final long GOLDEN = 0x9E37_79B9_7F4A_7C15L;

    /** Returns the operands of a case. The operations in place and out of place have different operands. */
    public static RandomOperands of(long seed, int index, boolean inPlace) {
        return new RandomOperands(mix(seed + mix(2L * index + (inPlace ? 1 : 0))));
    }

    long bits(int rank, long index) {
        return mix(seed + mix(rank + 1) + index * GOLDEN);
    }

    /**
     * Computes the finalizer of SplitMix64 (Steele, Lea and Flood: Fast Splittable Pseudorandom Number Generators,
     * 2014).
     */
    private static long mix(long value) {
        long z = value + GOLDEN;
        z = (z ^ (z >>> 30)) * 0xBF58_476D_1CE4_E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D0_49BB_1331_11EBL;
        return z ^ (z >>> 31);
    }
}
