package org.millrace.cli;

import org.millrace.DataType;

/** Integers: sums and products wrap around, and every bit must be right. */
final class IntegerReference extends Reference {

    private final Reduction reduction;
    private final int ranks;
    private final RandomOperands operands;
    private final boolean unsigned;
    /** Bits of a long above those of the type. */
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
     * Any bits; for an average so small that the sum does not wrap, since what a quotient of a wrapped sum is depends
     * on who divides.
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

    /** The low bits as a number of this type. */
    private long extend(long bits) {
        return unsigned ? bits << spare >>> spare : bits << spare >> spare;
    }
}
