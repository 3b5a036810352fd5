package org.millrace.cli.check;

import java.lang.foreign.MemorySegment;
import org.millrace.DataType;

/**
 * Makes the elements of one type, and knows what a reduction of all ranks' elements must give. Independent of the code
 * that is measured.
 */
public interface Reference {

    /** The reference of a type. */
    static Reference of(DataType type) {
        return type.isFloating() ? new FloatReference(FloatFormat.of(type)) : new IntegerReference(type);
    }

    /**
     * Makes elements.
     *
     * @param memory    host memory for {@code count} elements
     * @param operands  their bits
     * @param reduction what they are meant for, which may limit their range
     * @param rank      whose they are
     * @param ranks     how many ranks there are
     * @param first     index of the first
     * @param count     how many
     */
    void fill(MemorySegment memory, RandomOperands operands, Reduction reduction, int rank, int ranks, long first,
            long count);

    /**
     * Compares elements with what they must be.
     *
     * @param memory    host memory with {@code count} elements
     * @param operands  the bits of what went in
     * @param reduction how they were combined
     * @param ranks     how many ranks there are
     * @param first     index of the first
     * @param count     how many
     * @return the number of elements that are wrong
     */
    long countWrong(MemorySegment memory, RandomOperands operands, Reduction reduction, int ranks, long first,
            long count);
}
