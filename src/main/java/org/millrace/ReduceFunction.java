package org.millrace;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Objects;
import java.util.function.DoubleBinaryOperator;
import java.util.function.LongBinaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * A reduction that NCCL does not have, defined by functions of two elements. The functions run on the host's CPU, over
 * host memory. {@link BlockingOperations#allReduce(Operand, ReduceFunction)} and the scans of
 * {@link BlockingOperations} accept these reductions. The functions must be associative. They need not be commutative,
 * because elements are combined in rank order.
 *
 * @param integers function for integers. Signed integers are sign-extended to 64 bits, unsigned integers of less than
 *                 64 bits are zero-extended. Null if integers are not supported
 * @param floats   function for {@code float} and {@code double}; null if they are not supported
 */
public record ReduceFunction(@Nullable LongBinaryOperator integers, @Nullable DoubleBinaryOperator floats) {

    /** The sum, for scans. */
    public static final ReduceFunction SUM = new ReduceFunction(Long::sum, Double::sum);
    /** The product, for scans. */
    public static final ReduceFunction PROD = new ReduceFunction((a, b) -> a * b, (a, b) -> a * b);
    /** The largest element, for scans. */
    public static final ReduceFunction MAX = new ReduceFunction(Math::max, Math::max);
    /** The smallest element, for scans. */
    public static final ReduceFunction MIN = new ReduceFunction(Math::min, Math::min);
    /** Bitwise and. */
    public static final ReduceFunction BITWISE_AND = ofLongs((a, b) -> a & b);
    /** Bitwise or. */
    public static final ReduceFunction BITWISE_OR = ofLongs((a, b) -> a | b);
    /** Bitwise exclusive or. */
    public static final ReduceFunction BITWISE_XOR = ofLongs((a, b) -> a ^ b);
    /** 1 if all elements differ from 0, else 0. */
    public static final ReduceFunction LOGICAL_AND = ofLongs((a, b) -> a != 0 && b != 0 ? 1 : 0);
    /** 1 if any element differs from 0, else 0. */
    public static final ReduceFunction LOGICAL_OR = ofLongs((a, b) -> a != 0 || b != 0 ? 1 : 0);
    /** 1 if an odd number of elements differ from 0, else 0. */
    public static final ReduceFunction LOGICAL_XOR = ofLongs((a, b) -> (a != 0) != (b != 0) ? 1 : 0);

    /** {@return a reduction of integers of any size} */
    public static ReduceFunction ofLongs(LongBinaryOperator function) {
        return new ReduceFunction(Objects.requireNonNull(function, "the function is null"), null);
    }

    /** {@return a reduction of {@code float} and {@code double}} */
    public static ReduceFunction ofDoubles(DoubleBinaryOperator function) {
        return new ReduceFunction(null, Objects.requireNonNull(function, "the function is null"));
    }

    /** Returns whether this reduction accepts an element type. */
    boolean takes(DataType type) {
        return switch (type) {
            case FLOAT32, FLOAT64 -> floats != null;
            case FLOAT16, BFLOAT16, FLOAT8_E4M3, FLOAT8_E5M2 -> false;
            default -> integers != null;
        };
    }

    /**
     * Replaces each element of {@code later} by the combination of the elements of {@code earlier} and {@code later}.
     */
    void combine(MemorySegment earlier, MemorySegment later, long count, DataType type) {
        for (long i = 0; i < count; i++) {
            switch (type) {
                case FLOAT32 -> later.setAtIndex(FLOAT, i,
                        (float) floats.applyAsDouble(earlier.getAtIndex(FLOAT, i), later.getAtIndex(FLOAT, i)));
                case FLOAT64 -> later.setAtIndex(DOUBLE, i,
                        floats.applyAsDouble(earlier.getAtIndex(DOUBLE, i), later.getAtIndex(DOUBLE, i)));
                default -> set(later, i, type, integers.applyAsLong(get(earlier, i, type), get(later, i, type)));
            }
        }
    }

    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;
    private static final ValueLayout.OfDouble DOUBLE = ValueLayout.JAVA_DOUBLE_UNALIGNED;
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;

    private static long get(MemorySegment segment, long index, DataType type) {
        return switch (type) {
            case INT8 -> segment.get(ValueLayout.JAVA_BYTE, index);
            case UINT8 -> segment.get(ValueLayout.JAVA_BYTE, index) & 0xff;
            case INT32 -> segment.getAtIndex(INT, index);
            case UINT32 -> Integer.toUnsignedLong(segment.getAtIndex(INT, index));
            default -> segment.getAtIndex(LONG, index);
        };
    }

    private static void set(MemorySegment segment, long index, DataType type, long value) {
        switch (type.bytes()) {
            case 1 -> segment.set(ValueLayout.JAVA_BYTE, index, (byte) value);
            case 4 -> segment.setAtIndex(INT, index, (int) value);
            default -> segment.setAtIndex(LONG, index, value);
        }
    }
}
