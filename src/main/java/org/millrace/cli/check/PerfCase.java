package org.millrace.cli.check;

import org.millrace.DataType;

/**
 * One line of the table.
 *
 * @param index      its number, from 0
 * @param type       type of the elements
 * @param reduction  how they are combined
 * @param count      elements of the larger operand of one rank: the call is given fewer where the other one is only a
 *                   part of it
 * @param warmup     operations before those that are timed
 * @param iterations operations that are timed
 */
public record PerfCase(int index, DataType type, Reduction reduction, long count, int warmup, int iterations) {

    public long bytes() {
        return count * type.bytes();
    }

    @Override
    public String toString() {
        return bytes() + " B " + type.label() + " " + reduction;
    }
}
