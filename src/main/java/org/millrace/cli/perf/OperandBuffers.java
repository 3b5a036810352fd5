package org.millrace.cli.perf;

import java.lang.foreign.MemorySegment;
import org.millrace.DataType;
import org.millrace.Operation;

/**
 * An operation with its type and count, and the operands of one rank.
 *
 * @param count number of elements that the caller passes to the operation
 */
record OperandBuffers(CollectiveCall call, DataType type, Reduction reduction, long count, MemorySegment send,
        MemorySegment receive, boolean inPlace) {

    /**
     * Returns the operands for an operation whose larger operand has the given number of elements. The operation is in
     * place if {@code send} and {@code receive} are the same segment.
     */
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

    /** Returns whether the result and the send operand have the same address and the same size. */
    boolean overwritesOperand() {
        return inPlace && send.byteSize() == receive.byteSize();
    }
}
