package org.millrace.cli.perf;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.DataType;

/**
 * Creates the elements of an operation's operands, and computes the expected reduction of all ranks' elements.
 * Independent of the measured code.
 */
abstract class Reference {

    private final int elementBytes;

    Reference(int elementBytes) {
        this.elementBytes = elementBytes;
    }

    static Reference of(DataType type, Reduction reduction, int ranks, RandomOperands operands) {
        return type.isFloating() ? new FloatReference(FloatFormat.of(type), reduction, ranks, operands)
                : new IntegerReference(type, reduction, ranks, operands);
    }

    int elementBytes() {
        return elementBytes;
    }

    abstract long element(int rank, long index);

    /**
     * Returns whether the low bits of {@code bits} are a right result of the reduction of all ranks' elements at
     * {@code index}.
     */
    abstract boolean isRight(long bits, long index);

    void fill(MemorySegment memory, int rank, long first, long count) {
        for (long i = 0; i < count; i++) {
            set(memory, elementBytes, i, element(rank, first + i));
        }
    }

    long countWrong(MemorySegment memory, long first, long count) {
        long wrong = 0;
        for (long i = 0; i < count; i++) {
            wrong += isRight(get(memory, elementBytes, i), first + i) ? 0 : 1;
        }
        return wrong;
    }

    static long get(MemorySegment memory, int bytes, long index) {
        return switch (bytes) {
            case 1 -> memory.get(ValueLayout.JAVA_BYTE, index);
            case 2 -> memory.getAtIndex(ValueLayout.JAVA_SHORT, index);
            case 4 -> memory.getAtIndex(ValueLayout.JAVA_INT, index);
            default -> memory.getAtIndex(ValueLayout.JAVA_LONG, index);
        };
    }

    static void set(MemorySegment memory, int bytes, long index, long bits) {
        switch (bytes) {
            case 1 -> memory.set(ValueLayout.JAVA_BYTE, index, (byte) bits);
            case 2 -> memory.setAtIndex(ValueLayout.JAVA_SHORT, index, (short) bits);
            case 4 -> memory.setAtIndex(ValueLayout.JAVA_INT, index, (int) bits);
            default -> memory.setAtIndex(ValueLayout.JAVA_LONG, index, bits);
        }
    }

    /** Reference for integers. Sums and products wrap around, and every bit must be right. */
    static final class IntegerReference extends Reference {

        private final Reduction reduction;
        private final int ranks;
        private final RandomOperands operands;
        private final boolean unsigned;
        /** Number of high bits of a {@code long} that an element of the type does not use. */
        private final int spare;

        IntegerReference(DataType type, Reduction reduction, int ranks, RandomOperands operands) {
            super(type.bytes());
            this.reduction = reduction;
            this.ranks = ranks;
            this.operands = operands;
            unsigned = type == DataType.UINT8 || type == DataType.UINT32 || type == DataType.UINT64;
            spare = Long.SIZE - 8 * type.bytes();
        }

        @Override
        boolean isRight(long bits, long index) {
            return extend(bits) == expected(index);
        }

        /**
         * Returns a random element. For an average, divides the element by the number of ranks, so that the sum over
         * the ranks does not wrap around. If a sum wrapped around, the average would depend on whether a rank divides
         * before or after the addition.
         */
        @Override
        long element(int rank, long index) {
            long bits = extend(operands.bits(rank, index));
            if (reduction != Reduction.AVG) {
                return bits;
            }
            return unsigned ? Long.divideUnsigned(bits, ranks) : bits / ranks;
        }

        private long expected(long index) {
            long result = element(0, index) * (reduction == Reduction.MULSUM ? Reduction.factor(0) : 1);
            for (int rank = 1; rank < ranks; rank++) {
                long value = element(rank, index);
                result = switch (reduction) {
                    case SUM, AVG -> result + value;
                    case PROD -> result * value;
                    case MAX -> compare(result, value) >= 0 ? result : value;
                    case MIN -> compare(result, value) <= 0 ? result : value;
                    case MULSUM -> result + value * Reduction.factor(rank);
                };
            }
            if (reduction == Reduction.AVG) {
                return unsigned ? Long.divideUnsigned(result, ranks) : result / ranks;
            }
            return extend(result);
        }

        private int compare(long a, long b) {
            return unsigned ? Long.compareUnsigned(a, b) : Long.compare(a, b);
        }

        /** Returns the low bits as a number of this type, sign-extended if the type is signed. */
        private long extend(long bits) {
            return unsigned ? bits << spare >>> spare : bits << spare >> spare;
        }
    }

    /**
     * Reference for floating-point numbers. The reference computes in double precision. A collective rounds to the type
     * after every step and may combine ranks in any order. The reference therefore accepts results within the error of
     * this rounding.
     */
    static final class FloatReference extends Reference {

        private static final double DOUBLE_ROUNDOFF = 0x1p-53;
        private static final int DOUBLE_FRACTION_BITS = 52;

        private final FloatFormat format;
        private final Reduction reduction;
        private final int ranks;
        private final RandomOperands operands;
        private final int fractionBits;
        /**
         * Largest error of a result, relative to the sum of the elements' magnitudes. For n roundings with the error u,
         * it is (1 + u)^n - 1, plus the reference's own error.
         */
        private final double relative;
        /** Largest absolute error, for numbers that are too small for the relative error. */
        private final double absolute;

        FloatReference(FloatFormat format, Reduction reduction, int ranks, RandomOperands operands) {
            super(format.bytes());
            this.format = format;
            this.reduction = reduction;
            this.ranks = ranks;
            this.operands = operands;
            fractionBits = -Math.getExponent(format.roundoff()) - 1;
            int roundings = roundings();
            relative = roundings == 0 ? 0
                    : Math.expm1(roundings * Math.log1p(format.roundoff())) + ranks * DOUBLE_ROUNDOFF;
            absolute = roundings * format.smallest();
        }

        /** Returns the maximum number of roundings to the type on the way to a result. */
        private int roundings() {
            return switch (reduction) {
                case MAX, MIN -> 0;
                case SUM, PROD -> ranks - 1;
                case MULSUM -> 2 * ranks - 1;
                // AVG has one more rounding than MULSUM, because the factor 1/ranks is rounded, too.
                case AVG -> 2 * ranks;
            };
        }

        @Override
        long element(int rank, long index) {
            return format.encode(value(rank, index));
        }

        @Override
        boolean isRight(long bits, long index) {
            return isRight(format.decode(bits), index);
        }

        /**
         * Returns a number that is exact in this type, with random fraction bits. Even ranks have magnitudes from 1 to
         * 2, and odd ranks magnitudes from ½ to 1, so that products stay near 1. Half of all numbers are negative.
         * Assembles the number from bits, because perf spends much of its time here and bit operations are fast.
         */
        private double value(int rank, long index) {
            long bits = operands.bits(rank, index);
            long fraction = bits >>> Long.SIZE - fractionBits << DOUBLE_FRACTION_BITS - fractionBits;
            long exponent = (long) (Double.MAX_EXPONENT - (rank & 1)) << DOUBLE_FRACTION_BITS;
            return Double.longBitsToDouble(bits << Long.SIZE - 1 | exponent | fraction);
        }

        private boolean isRight(double actual, long index) {
            double expected = value(0, index);
            if (reduction == Reduction.MULSUM) {
                expected *= Reduction.factor(0);
            }
            double magnitude = Math.abs(expected);
            for (int rank = 1; rank < ranks; rank++) {
                double value = value(rank, index);
                switch (reduction) {
                    case SUM, AVG -> expected += value;
                    case MULSUM -> {
                        value *= Reduction.factor(rank);
                        expected += value;
                    }
                    case PROD -> expected *= value;
                    case MAX -> expected = Math.max(expected, value);
                    case MIN -> expected = Math.min(expected, value);
                }
                magnitude = reduction == Reduction.PROD ? Math.abs(expected) : magnitude + Math.abs(value);
            }
            if (reduction == Reduction.AVG) {
                expected /= ranks;
                magnitude /= ranks;
            }
            return Math.abs(actual - expected) <= relative * magnitude + absolute; // false if a value is NaN
        }
    }
}
