package org.millrace.cli.perf;

import java.lang.foreign.MemorySegment;
import org.millrace.cli.check.CollectiveCall;
import org.millrace.cli.check.PerfCase;

/**
 * A case and where its operands lie.
 *
 * @param line      the case
 * @param count     what the call is given
 * @param from      this rank's elements
 * @param to        where its result goes
 * @param isInPlace whether both lie in one operand
 */
record OperandBuffers(PerfCase line, long count, MemorySegment from, MemorySegment to, boolean isInPlace) {

    /** In place if {@code send} and {@code receive}, which have room for the larger operand each, are the same. */
    static OperandBuffers of(PerfCase line, PerfPlan plan, int rank, MemorySegment send, MemorySegment receive) {
        CollectiveCall collective = plan.collective();
        boolean inPlace = send == receive;
        long count = line.count() / collective.parts(plan.ranks());
        long bytes = line.type().bytes();
        long sendOffset = inPlace ? collective.sendOffset(count, rank) : 0;
        long receiveOffset = inPlace ? collective.receiveOffset(count, rank) : 0;
        return new OperandBuffers(line, count,
                send.asSlice(sendOffset * bytes, collective.sendCount(count, plan.ranks()) * bytes),
                receive.asSlice(receiveOffset * bytes, collective.receiveCount(count, plan.ranks()) * bytes), inPlace);
    }

    /** Whether the result takes the place of exactly what is sent. */
    boolean isSame() {
        return isInPlace && from.byteSize() == to.byteSize();
    }
}
