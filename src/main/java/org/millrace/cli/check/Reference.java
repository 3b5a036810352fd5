package org.millrace.cli.check;

import java.lang.foreign.MemorySegment;
import org.millrace.DataType;

/**
 * Makes the elements of an operation's operands, and knows what a reduction of all ranks' elements must give.
 * Independent of the code that is measured.
 */
interface Reference {

    /**
     * The reference of an operation.
     *
     * @param reduction how elements are combined, or are meant to be, which may limit their range
     */
    static Reference of(DataType type, Reduction reduction, int ranks, RandomOperands operands) {
        return type.isFloating() ? new FloatReference(FloatFormat.of(type), reduction, ranks, operands)
                : new IntegerReference(type, reduction, ranks, operands);
    }

    int elementBytes();

    /** Makes elements. */
    void fill(MemorySegment memory, int rank, long first, long count);

    long countWrong(MemorySegment memory, long first, long count);
}
