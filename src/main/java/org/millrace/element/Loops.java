package org.millrace.element;

import java.lang.foreign.MemorySegment;
import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.millrace.DataType;
import org.millrace.element.Loop.ElementFunction;
import org.millrace.element.Loop.Representation;

/**
 * The loop for each type and {@link Step}. A loop is created on first use and then kept, because its creation defines a
 * class. HotSpot vectorizes some loops only if they are {@linkplain StagedLoop staged}; these loops were found by
 * measurement. Sums and products of 8-byte elements are not staged, because the memory bandwidth limits them in either
 * case.
 */
final class Loops {

    private static final Map<DataType, Map<Step, Loop>> MADE = new EnumMap<>(DataType.class);

    static {
        for (DataType type : DataType.values()) {
            MADE.put(type, new ConcurrentHashMap<>());
        }
    }

    private Loops() {}

    static Loop of(DataType type, Step step) {
        Map<Step, Loop> ofType = MADE.get(type);
        Loop made = ofType.get(step);
        return made == null ? ofType.computeIfAbsent(step, each -> make(type, each)) : made;
    }

    private static Loop make(DataType type, Step step) {
        boolean order = step == Step.MINIMUM || step == Step.MAXIMUM || step == Step.ONE_NAN;
        return switch (type) {
            case INT8 -> staged(Representation.BYTE, IntegerFunctions.ofInt(step, true, 0xff));
            case UINT8 -> staged(Representation.BYTE, IntegerFunctions.ofInt(step, false, 0xff));
            case INT32 -> staged(Representation.INT, IntegerFunctions.ofInt(step, true, -1));
            case UINT32 -> staged(Representation.INT, IntegerFunctions.ofInt(step, false, -1));
            case INT64 -> Loop.of(Representation.LONG, IntegerFunctions.ofLong(step, true));
            case UINT64 -> Loop.of(Representation.LONG, IntegerFunctions.ofLong(step, false));
            case FLOAT16 -> order ? staged(Representation.SHORT, FloatOrder.ofInt(step, 0x7c00_0000))
                    : staged(Representation.FLOAT16, FloatFunctions.ofFloat(step, type));
            case BFLOAT16 -> order ? staged(Representation.SHORT, FloatOrder.ofInt(step, 0x7f80_0000))
                    : Loop.of(Representation.BFLOAT16, FloatFunctions.ofFloat(step, type));
            case FLOAT32 -> order ? staged(Representation.INT, FloatOrder.ofInt(step, 0x7f80_0000))
                    : Loop.of(Representation.FLOAT32, FloatFunctions.ofFloat(step, type));
            case FLOAT64 -> order ? staged(Representation.LONG, FloatOrder.ofLong(step))
                    : Loop.of(Representation.FLOAT64, FloatFunctions.ofDouble(step));
            case FLOAT8_E4M3 -> Loop.of(Representation.BYTE, new Float8Functions(Elements.Float8.E4M3).ofInt(step));
            case FLOAT8_E5M2 -> Loop.of(Representation.BYTE, new Float8Functions(Elements.Float8.E5M2).ofInt(step));
        };
    }

    private static Loop staged(Representation representation, ElementFunction function) {
        return new StagedLoop(Loop.of(representation, function), representation.bytes());
    }

    /**
     * Runs a loop that stores to an array of this thread, and copies the array to the destination.
     *
     * <p>
     * HotSpot (up to at least JDK 25) uses vector instructions only if the stores of one iteration provably do not
     * overlap the loads of another. HotSpot can never prove that two native memory segments do not overlap. It can
     * always prove that native memory and an array do not overlap. The array stays in the first-level cache. The copy
     * costs less time than the vector instructions save. A staged loop computes sums of binary16 12 times as fast as an
     * unstaged loop. The factor is 7 for sums of bytes, and 2 for sums of 32-bit integers. Loops over {@code float},
     * {@code double} and bfloat16 are no faster if staged. HotSpot reads their segments as integers and reinterprets
     * the integers as floats. This reinterpretation has no vector form.
     */
    private record StagedLoop(Loop loop, int elementBytes) implements Loop {

        private static final ThreadLocal<MemorySegment> STAGE =
                ThreadLocal.withInitial(() -> MemorySegment.ofArray(new byte[BLOCK_BYTES]));

        @Override
        public void run(MemorySegment x, long xAt, MemorySegment y, long yAt, MemorySegment out, long at, int count,
                long scalar) {
            MemorySegment stage = STAGE.get();
            loop.run(x, xAt, y, yAt, stage, 0, count, scalar);
            MemorySegment.copy(stage, 0, out, at, (long) count * elementBytes);
        }
    }

    /**
     * Sums and products of the floating-point types with 16, 32 and 64 bits. The 16-bit types are computed in binary32.
     * If the precision of a 16-bit type is p bits (11 or 8), binary32 has 24 &ge; 2p + 2 bits. A sum or a product
     * rounded to 24 bits and then to p bits therefore equals the value rounded once (Figueroa, "When is double rounding
     * innocuous?", 1995). A product and a sum together do not have this property, see
     * {@link Elements.Rounding#scaleAdd}.
     */
    private static final class FloatFunctions {

        private FloatFunctions() {}

        static ElementFunction.OfFloat ofFloat(Step step, DataType type) {
            return switch (step) {
                case ADD -> (x, y, s) -> x + y;
                case MULTIPLY -> (x, y, s) -> x * y;
                case SCALE -> (x, y, s) -> x * s;
                case SCALE_ADD -> switch (type) {
                    case FLOAT16 -> (x, y, s) -> Elements.Rounding.scaleAdd(x, s, y, 13, 0x1p-14f);
                    case BFLOAT16 -> (x, y, s) -> Elements.Rounding.scaleAdd(x, s, y, 16, 0x1p-125f);
                    default -> (x, y, s) -> Math.fma(x, s, y);
                };
                case MINIMUM, MAXIMUM, DIVIDE, ONE_NAN ->
                    throw new IllegalArgumentException(step + " of " + type + " is not computed as a float");
            };
        }

        static ElementFunction.OfDouble ofDouble(Step step) {
            return switch (step) {
                case ADD -> (x, y, s) -> x + y;
                case MULTIPLY -> (x, y, s) -> x * y;
                case SCALE -> (x, y, s) -> x * s;
                case SCALE_ADD -> (x, y, s) -> Math.fma(x, s, y);
                case MINIMUM, MAXIMUM, DIVIDE, ONE_NAN ->
                    throw new IllegalArgumentException(step + " of FLOAT64 is not computed as a double");
            };
        }
    }

    /**
     * Functions on the bits of floats: the smaller and the larger of two values, and the replacement of NaNs. If one of
     * the values is a NaN, the result is the other value. (Java's {@code min} returns the NaN.) -0 is smaller than +0.
     *
     * <p>
     * The bits of positive floats, read as integers, have the order of the floats. The bits of negative floats have the
     * reverse order, and {@code order} reverses it again. The ascending order of the integers is then: negative NaNs,
     * minus infinity, the numbers, infinity, positive NaNs. Subtracting the number of negative NaNs from each integer
     * makes the negative NaNs overflow to the largest integers. Every NaN is then larger than every number. The maximum
     * of two values is computed by negation: both values are negated, their minimum is selected, and the minimum is
     * negated. All of this is integer arithmetic without branches, which HotSpot compiles to vector instructions.
     * HotSpot does not vectorize a comparison of floats that selects a value.
     */
    private static final class FloatOrder {

        private FloatOrder() {}

        /**
         * Returns a function for binary32, or for 16-bit formats in the upper half of 32 bits.
         *
         * @param infinity the bits of infinity in the format
         */
        static ElementFunction.OfInt ofInt(Step step, int infinity) {
            if (step == Step.ONE_NAN) {
                return (x, y, s) -> oneNan(x, infinity - (x & Integer.MAX_VALUE) >> 31);
            }
            int nans = Integer.MAX_VALUE - infinity;
            int sign = step == Step.MAXIMUM ? Integer.MIN_VALUE : 0;
            return (x, y, s) -> bits(Math.min(order(x ^ sign, nans), order(y ^ sign, nans)), nans) ^ sign;
        }

        private static int order(int bits, int nans) {
            return (bits ^ bits >> 31 & Integer.MAX_VALUE) - nans;
        }

        private static int bits(int order, int nans) {
            int turned = order + nans;
            return turned ^ turned >> 31 & Integer.MAX_VALUE;
        }

        /** @param nan all ones if {@code bits} is a NaN, else 0 */
        private static int oneNan(int bits, int nan) {
            return bits & ~nan | nan >>> 1;
        }

        static ElementFunction.OfLong ofLong(Step step) {
            if (step == Step.ONE_NAN) {
                return (x, y, s) -> oneNan(x, INFINITY - (x & Long.MAX_VALUE) >> 63);
            }
            long sign = step == Step.MAXIMUM ? Long.MIN_VALUE : 0;
            return (x, y, s) -> bits(Math.min(order(x ^ sign), order(y ^ sign))) ^ sign;
        }

        private static long oneNan(long bits, long nan) {
            return bits & ~nan | nan >>> 1;
        }

        private static final long INFINITY = Double.doubleToLongBits(Double.POSITIVE_INFINITY);
        private static final long NANS = Long.MAX_VALUE - INFINITY;

        private static long order(long bits) {
            return (bits ^ bits >> 63 & Long.MAX_VALUE) - NANS;
        }

        private static long bits(long order) {
            long turned = order + NANS;
            return turned ^ turned >> 63 & Long.MAX_VALUE;
        }
    }

    /** Functions on the integer types. Sums and products wrap around, as in C's unsigned arithmetic. */
    private static final class IntegerFunctions {

        private IntegerFunctions() {}

        /**
         * Returns a function for elements of 8 or 32 bits. Unsigned 8-bit elements are sign-extended, too, see
         * {@link Representation#BYTE}.
         *
         * @param mask ones in the bits of an element
         */
        static ElementFunction.OfInt ofInt(Step step, boolean signed, int mask) {
            int bias = signed ? 0 : ~(mask >>> 1);
            return switch (step) {
                case ADD -> (x, y, s) -> x + y;
                case MULTIPLY -> (x, y, s) -> x * y;
                case MINIMUM -> (x, y, s) -> Math.min(x ^ bias, y ^ bias) ^ bias;
                case MAXIMUM -> (x, y, s) -> Math.max(x ^ bias, y ^ bias) ^ bias;
                case SCALE -> (x, y, s) -> x * s;
                case SCALE_ADD -> (x, y, s) -> x * s + y;
                case DIVIDE -> signed ? (x, y, s) -> x / s : (x, y, s) -> Integer.divideUnsigned(x & mask, s);
                case ONE_NAN -> throw new IllegalArgumentException("no integer is a NaN");
            };
        }

        static ElementFunction.OfLong ofLong(Step step, boolean signed) {
            long bias = signed ? 0 : Long.MIN_VALUE;
            return switch (step) {
                case ADD -> (x, y, s) -> x + y;
                case MULTIPLY -> (x, y, s) -> x * y;
                case MINIMUM -> (x, y, s) -> Math.min(x ^ bias, y ^ bias) ^ bias;
                case MAXIMUM -> (x, y, s) -> Math.max(x ^ bias, y ^ bias) ^ bias;
                case SCALE -> (x, y, s) -> x * s;
                case SCALE_ADD -> (x, y, s) -> x * s + y;
                case DIVIDE -> signed ? (x, y, s) -> x / s : (x, y, s) -> Long.divideUnsigned(x, s);
                case ONE_NAN -> throw new IllegalArgumentException("no integer is a NaN");
            };
        }
    }

    /**
     * Functions on 8-bit floats, as tables with the results for all 65,536 pairs of operands. NCCL converts both
     * operands to binary16, which is exact. NCCL computes and rounds in binary16, and then rounds the result again to 8
     * bits.
     */
    private static final class Float8Functions {

        private final Elements.Float8 format;

        Float8Functions(Elements.Float8 format) {
            this.format = format;
        }

        /** A binary operation on floats. */
        @FunctionalInterface
        private interface Operation {
            float apply(float x, float y);
        }

        ElementFunction.OfInt ofInt(Step step) {
            return switch (step) {
                case ADD -> lookUp(table(Float::sum));
                case MULTIPLY -> lookUp(table((x, y) -> x * y));
                case MINIMUM -> lookUp(table((x, y) -> Float.isNaN(x) ? y : Float.isNaN(y) ? x : Math.min(x, y)));
                case MAXIMUM -> lookUp(table((x, y) -> Float.isNaN(x) ? y : Float.isNaN(y) ? x : Math.max(x, y)));
                case SCALE -> {
                    byte[] products = table((x, y) -> x * y);
                    yield (x, y, s) -> products[index(x, s)];
                }
                case SCALE_ADD -> {
                    byte[] products = table((x, y) -> x * y);
                    byte[] sums = table(Float::sum);
                    yield (x, y, s) -> sums[index(products[index(x, s)], y)];
                }
                case DIVIDE, ONE_NAN -> throw new IllegalArgumentException(step + " of " + format + " is not needed");
            };
        }

        private static ElementFunction.OfInt lookUp(byte[] table) {
            return (x, y, s) -> table[index(x, y)];
        }

        private static int index(int x, int y) {
            return (x & 0xff) << Byte.SIZE | y & 0xff;
        }

        private byte[] table(Operation operation) {
            byte[] results = new byte[1 << 2 * Byte.SIZE];
            for (int x = Byte.MIN_VALUE; x <= Byte.MAX_VALUE; x++) {
                for (int y = Byte.MIN_VALUE; y <= Byte.MAX_VALUE; y++) {
                    float result = operation.apply(format.toFloat((byte) x), format.toFloat((byte) y));
                    results[index(x, y)] = format.ofFloat(Float.float16ToFloat(Float.floatToFloat16(result)));
                }
            }
            return results;
        }
    }

    /**
     * Computation that one pass makes on each element. A reduction makes one or two passes. {@code x} is this rank's
     * element, {@code y} the received element, {@code s} the operation's scalar.
     */
    enum Step {
        ADD,
        MULTIPLY,
        MINIMUM,
        MAXIMUM,
        /** {@code x * s}. */
        SCALE,
        /** {@code x * s + y}, rounded once; for 8-bit floats the product is rounded before the addition. */
        SCALE_ADD,
        /** {@code x / s}, rounded towards zero; {@code s} is a number of ranks. Integers only. */
        DIVIDE,
        /**
         * {@code x}. If {@code x} is a NaN, the result is the NaN with all bits set except the sign. Only for
         * floating-point types of 16 bits or more.
         */
        ONE_NAN
    }
}
