package org.millrace.transport.collnet;

import java.lang.foreign.MemorySegment;
import org.millrace.DataType;
import org.millrace.ReduceOp;

/** The arithmetic of an aggregator. */
@FunctionalInterface
public interface Reducer {

    /**
     * Combines elements: {@code into[i] = op(from[i], into[i])}.
     *
     * @param type       element type
     * @param op         how
     * @param from       one rank's elements
     * @param fromOffset bytes
     * @param into       what the ranks before it came to
     * @param intoOffset bytes
     * @param count      elements
     */
    void reduce(DataType type, ReduceOp.BuiltIn op, MemorySegment from, long fromOffset, MemorySegment into,
            long intoOffset, long count);
}
