package org.millrace.element;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.zip.CRC32;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.DataType;
import org.millrace.ReduceOp;

/**
 * Compares the results of the kernels with results of NCCL. The expected values are CRCs of results that NCCL 2.28.9
 * computed on two H200s. The test program called {@code ncclReduce} over two ranks to rank 1, with the elements of
 * {@link #element}. The protocols LL and Simple returned the same results. Before the CRC was computed, every NaN in a
 * result of type float was replaced by the same NaN.
 */
@Tag("slow")
class NcclAgreementTest {

    /** Scalar of {@code ncclRedOpCreatePreMulSum} for each type, as bits: 3 for integers, about a third for floats. */
    private static final long[] SCALARS =
            {3, 3, 3, 3, 3, 3, 0x3555, 0x3eaa_aaab, 0x3fd5_5555_5555_5555L, 0x3eab, 0x2b, 0x35};

    @ParameterizedTest
    @CsvSource({
            // type, sum, prod, max, min, avg, mulsum
            "INT8,         0644d9bb, 06c7fcb6, f597c3f7, 5823f09c, e9ca4fc3, 717aa870",
            "UINT8,        0644d9bb, 06c7fcb6, 5aacf832, f718cb59, df416db0, 717aa870",
            "INT32,        a8849d82, 507b8255, 4f7f22aa, ff8b727f, 1c1f062e, 6118bdee",
            "UINT32,       a8849d82, 507b8255, 4e8ea650, fe7af685, 4e015e34, 6118bdee",
            "INT64,        3aac8d33, 410e3ef1, b0da51bd, 7e1230ca, 6e76f6d3, f006bdc0",
            "UINT64,       3aac8d33, 410e3ef1, 577d4146, 99b52031, ac1060b5, f006bdc0",
            "FLOAT16,      ca0a223e, 9ded9440, ac87a9cb, 950fb4d2, 97ca26b0, b57b6b1b",
            "FLOAT32,      088d4e30, 2cdfc8ad, f3cae21a, 300e1b20, 753711c1, 619b9c66",
            "FLOAT64,      a783485e, f7636287, e4c13fb1, 23c8bce3, ffd1d342, fab52db0",
            "BFLOAT16,     824e19aa, 18237d52, d050b88f, 29b12408, fe35179a, a78cfc42",
            "FLOAT8_E4M3,  126aff3e, 30fd97dd, c2aa77ce, 4107fa87, b77a31ca, 19b1cb7e",
            "FLOAT8_E5M2,  5ee99e91, dd40e6b6, 7cd01e87, 5c93d458, 9f16aa81, 21247d0a"})
    void returnsWhatNcclReturns(DataType type, String sum, String prod, String max, String min, String avg,
            String mulsum) {
        String[] builtIn = {sum, prod, max, min, avg};
        for (ReduceOp.BuiltIn op : ReduceOp.BuiltIn.values()) {
            assertEquals(builtIn[op.code()], crc(type, ElementKernel.of(type, op, 2)), type + " " + op);
        }
        assertEquals(mulsum, crc(type, ElementKernel.of(type, preMulSum(type), 2)), type + " PreMulSum");
    }

    private static ReduceOp preMulSum(DataType type) {
        return new ReduceOp.PreMulSum(ElementValues.value(type, SCALARS[type.code()]));
    }

    private static String crc(DataType type, ElementKernel kernel) {
        int bytes = type.bytes();
        int count = bytes == 2 ? 1 << 18 : 1 << 16;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment first = arena.allocate((long) count * bytes);
            MemorySegment second = arena.allocate((long) count * bytes);
            for (int i = 0; i < count; i++) {
                Elements.setBits(type, first, (long) i * bytes, element(type, 0, i));
                Elements.setBits(type, second, (long) i * bytes, element(type, 1, i));
            }
            kernel.copy(first, 0, first, 0, count);
            kernel.reduce(second, 0, first, 0, first, 0, count, true);
            byte[] result = new byte[count * bytes];
            MemorySegment canonical = MemorySegment.ofArray(result);
            for (int i = 0; i < count; i++) {
                Elements.setBits(type, canonical, (long) i * bytes,
                        canonical(type, ElementValues.getBits(type, first, (long) i * bytes)));
            }
            CRC32 crc = new CRC32();
            crc.update(result);
            return String.format("%08x", crc.getValue());
        }
    }

    private static long canonical(DataType type, long bits) {
        if (!type.isFloating() || !Double.isNaN(ElementValues.value(type, bits))) {
            return bits;
        }
        return switch (type) {
            case FLOAT16, BFLOAT16 -> 0x7fff;
            case FLOAT32 -> 0x7fff_ffff;
            case FLOAT64 -> 0x7ff8_0000_0000_0000L;
            default -> bits;
        };
    }

    /**
     * Returns element {@code i} of a rank. For 8-bit types the elements are all pairs of values. For other types, the
     * first elements are all pairs of 64 edge cases of a float with that size: zeros, subnormals, ones, largest
     * numbers, infinities, NaNs. Then random bits alternate with numbers of similar size, which cause roundings and
     * cancellations.
     */
    private static long element(DataType type, int rank, long i) {
        if (type.bytes() == 1) {
            return i >>> 8 * (1 - rank) & 0xff;
        }
        int fraction = switch (type) {
            case FLOAT16 -> 10;
            case BFLOAT16 -> 7;
            case INT32, UINT32, FLOAT32 -> 23;
            default -> 52;
        };
        int sign = 8 * type.bytes() - 1;
        long bias = (1L << sign - 1 - fraction) - 1;
        if (i < 64 * 64) {
            int edge = (int) (i >>> 6 * (1 - rank) & 63);
            long[] exponents = {0, 1, 2, bias - 1, bias, bias + 1, 2 * bias, 2 * bias + 1};
            long[] fractions = {0, 1, 1L << fraction - 1, (1L << fraction) - 1};
            return (long) (edge >> 5) << sign | exponents[edge >> 2 & 7] << fraction | fractions[edge & 3];
        }
        long random = mix(2 * i + rank);
        return i % 2 == 0 ? random
                : random & (1L << sign | (1L << fraction) - 1) | bias - 6 + (random >>> 40) % 12 << fraction;
    }

    /** The finalizer of SplitMix64. */
    private static long mix(long index) {
        long z = index * 0x9E37_79B9_7F4A_7C15L;
        z = (z ^ z >>> 30) * 0xBF58_476D_1CE4_E5B9L;
        z = (z ^ z >>> 27) * 0x94D0_49BB_1331_11EBL;
        return z ^ z >>> 31;
    }
}
