package org.millrace.engine;

import java.lang.foreign.MemorySegment;
import org.millrace.DataType;
import org.millrace.Operation;
import org.millrace.device.Operands;

/** Checks what a program hands to an operation of one rank before anything is done with it. */
final class Arguments {

    private final int rank;
    private final int ranks;
    private final Thread device;

    Arguments(int rank, int ranks, Thread device) {
        this.rank = rank;
        this.ranks = ranks;
        this.device = device;
    }

    /** As many elements as all ranks' parts of so many have. */
    long all(long count) {
        return Math.multiplyExact(count, (long) ranks);
    }

    /** @param inPlace elements that {@code send} begins behind {@code receive} in an operation in place */
    void both(Operation operation, MemorySegment send, long sendCount, MemorySegment receive, long receiveCount, DataType type, long inPlace) {
        apart(operation, send, sendCount, receive, receiveCount, type, inPlace * type.bytes());
    }

    void neverInPlace(Operation operation, MemorySegment send, long sendCount, MemorySegment receive, long receiveCount, DataType type) {
        apart(operation, send, sendCount, receive, receiveCount, type, Operands.NEVER_IN_PLACE);
    }

    private void apart(Operation operation, MemorySegment send, long sendCount, MemorySegment receive, long receiveCount, DataType type, long inPlaceBytes) {
        source(operation, send, sendCount, type);
        destination(operation, receive, receiveCount, type);
        Operands.checkOverlap(send, sendCount * type.bytes(), receive, receiveCount * type.bytes(), inPlaceBytes);
    }

    void source(Operation operation, MemorySegment segment, long count, DataType type) {
        operand(operation, "send", segment, count, type, false);
    }

    void destination(Operation operation, MemorySegment segment, long count, DataType type) {
        operand(operation, "receive", segment, count, type, true);
    }

    private void operand(Operation operation, String role, MemorySegment segment, long count, DataType type, boolean written) {
        String what = "rank " + rank + ", " + operation.label() + ", " + role;
        Operands.check(what, segment, count, type, written);
        Operands.checkReach(what, segment, device);
    }

    void registered(MemorySegment memory) {
        String what = "rank " + rank + ", memory to register";
        Operands.check(what, memory, memory.byteSize(), DataType.UINT8, true);
        Operands.checkReach(what, memory, device);
    }

    void rank(Operation operation, String role, int number) {
        if (number < 0 || number >= ranks) {
            throw new IllegalArgumentException("rank " + rank + ", " + operation.label()
                    + ": there is no " + role + " " + number + "; ranks are 0 to " + (ranks - 1));
        }
    }
}
