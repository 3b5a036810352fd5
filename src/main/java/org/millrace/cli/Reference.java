package org.millrace.cli;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.DataType;

/**
 * Makes the elements of an operation's operands, and knows what a reduction of all ranks' elements must give.
 * Independent of the code that is measured.
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

    /** The bits of an element of a rank's operand. */
    abstract long element(int rank, long index);

    /** Whether an element is what the reduction of all ranks' must give; of its bits those count that it has. */
    abstract boolean isRight(long bits, long index);

    /** Makes elements. */
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
}
