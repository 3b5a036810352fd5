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
     * @param ranks     how many ranks there are
     * @param operands  the bits of the elements
     */
    static Reference of(DataType type, Reduction reduction, int ranks, RandomOperands operands) {
        return type.isFloating() ? new FloatReference(FloatFormat.of(type), reduction, ranks, operands)
                : new IntegerReference(type, reduction, ranks, operands);
    }

    /** Bytes of an element. */
    int elementBytes();

    /**
     * Makes elements.
     *
     * @param memory host memory for {@code count} elements
     * @param rank   whose they are
     * @param first  index of the first
     */
    void fill(MemorySegment memory, int rank, long first, long count);

    /**
     * Compares elements with what they must be.
     *
     * @param memory host memory with {@code count} elements
     * @param first  index of the first
     * @return the number of elements that are wrong
     */
    long countWrong(MemorySegment memory, long first, long count);
}
