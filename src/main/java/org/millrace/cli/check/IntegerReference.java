package org.millrace.cli.check;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.DataType;

/** Integers: sums and products wrap around, and every bit must be right. */
final class IntegerReference implements Reference {

    private final DataType type;
    private final Reduction reduction;
    private final int ranks;
    private final RandomOperands operands;
    private final boolean unsigned;
    /** Bits of a long above those of the type. */
    private final int spare;

    IntegerReference(DataType type, Reduction reduction, int ranks, RandomOperands operands) {
        this.type = type;
        this.reduction = reduction;
        this.ranks = ranks;
        this.operands = operands;
        unsigned = type == DataType.UINT8 || type == DataType.UINT32 || type == DataType.UINT64;
        spare = Long.SIZE - 8 * type.bytes();
    }

    @Override
    public int elementBytes() {
        return type.bytes();
    }

    @Override
    public void fill(MemorySegment memory, int rank, long first, long count) {
        for (long i = 0; i < count; i++) {
            set(memory, i, value(rank, first + i));
        }
    }

    @Override
    public long countWrong(MemorySegment memory, long first, long count) {
        long wrong = 0;
        for (long i = 0; i < count; i++) {
            if (get(memory, i) != expected(first + i)) {
                wrong++;
            }
        }
        return wrong;
    }

    /**
     * Any bits; for an average so small that the sum does not wrap, since what a quotient of a wrapped sum is depends
     * on who divides.
     */
    private long value(int rank, long index) {
        long bits = extend(operands.bits(rank, index));
        if (reduction != Reduction.AVG) {
            return bits;
        }
        return unsigned ? Long.divideUnsigned(bits, ranks) : bits / ranks;
    }

    private long expected(long index) {
        long result = value(0, index) * (reduction == Reduction.MULSUM ? Reduction.factor(0) : 1);
        for (int rank = 1; rank < ranks; rank++) {
            long value = value(rank, index);
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

    private long get(MemorySegment memory, long index) {
        return extend(switch (type.bytes()) {
            case 1 -> memory.get(ValueLayout.JAVA_BYTE, index);
            case 4 -> memory.getAtIndex(ValueLayout.JAVA_INT, index);
            default -> memory.getAtIndex(ValueLayout.JAVA_LONG, index);
        });
    }

    private void set(MemorySegment memory, long index, long value) {
        switch (type.bytes()) {
            case 1 -> memory.set(ValueLayout.JAVA_BYTE, index, (byte) value);
            case 4 -> memory.setAtIndex(ValueLayout.JAVA_INT, index, (int) value);
            default -> memory.setAtIndex(ValueLayout.JAVA_LONG, index, value);
        }
    }
}
