package org.millrace.cli;

import java.lang.foreign.MemorySegment;
import org.millrace.DataType;
import org.millrace.Operation;

/**
 * An operation on elements, and where one rank's lie.
 *
 * @param count what the call is given
 */
record OperandBuffers(CollectiveCall call, DataType type, Reduction reduction, long count, MemorySegment send,
        MemorySegment receive, boolean inPlace) {

    /** Of so many elements of the larger operand; in place if {@code send} and {@code receive} are the same. */
    static OperandBuffers of(CollectiveCall call, DataType type, Reduction reduction, long elements, int rank,
            MemorySegment send, MemorySegment receive) {
        boolean inPlace = send == receive;
        Operation operation = call.operation();
        int ranks = call.ranks();
        long count = elements / operation.parts(ranks);
        long bytes = type.bytes();
        long sendOffset = inPlace ? operation.sendOffset(count, rank) : 0;
        long receiveOffset = inPlace ? operation.receiveOffset(count, rank) : 0;
        return new OperandBuffers(call, type, reduction, count,
                send.asSlice(sendOffset * bytes, operation.sendCount(count, ranks) * bytes),
                receive.asSlice(receiveOffset * bytes, operation.receiveCount(count, ranks) * bytes), inPlace);
    }

    /** Whether the result takes the place of exactly what is sent. */
    boolean overwritesOperand() {
        return inPlace && send.byteSize() == receive.byteSize();
    }
}
