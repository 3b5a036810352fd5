package org.millrace.engine;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.millrace.DataType;
import org.millrace.Operation;
import org.millrace.device.Operands;

/** Checks what a program hands to an operation of one rank before anything is done with it. */
final class Arguments {

    private final int rank;
    private final int ranks;
    private final Thread device;
    /** What messages begin with, by operation: every operation asks for it. */
    private final String[] sources;
    private final String[] destinations;

    Arguments(int rank, int ranks, Thread device) {
        this.rank = rank;
        this.ranks = ranks;
        this.device = device;
        this.sources = names("send");
        this.destinations = names("receive");
    }

    private String[] names(String role) {
        return Arrays.stream(Operation.values())
                .map(each -> "rank " + rank + ", " + each.label() + ", " + role)
                .toArray(String[]::new);
    }

    /** As many elements as all ranks' parts of so many have. */
    long all(long count) {
        return Math.multiplyExact(count, (long) ranks);
    }

    /** @param inPlace elements that {@code send} begins behind {@code receive} in an operation in place */
    void both(Operation operation, MemorySegment send, long sendCount, MemorySegment receive, long receiveCount,
            DataType type, long inPlace) {
        apart(operation, send, sendCount, receive, receiveCount, type, inPlace * type.bytes());
    }

    void neverInPlace(Operation operation, MemorySegment send, long sendCount, MemorySegment receive, long receiveCount,
            DataType type) {
        apart(operation, send, sendCount, receive, receiveCount, type, Operands.NEVER_IN_PLACE);
    }

    private void apart(Operation operation, MemorySegment send, long sendCount, MemorySegment receive,
            long receiveCount, DataType type, long inPlaceBytes) {
        source(operation, send, sendCount, type);
        destination(operation, receive, receiveCount, type);
        Operands.checkOverlap(send, sendCount * type.bytes(), receive, receiveCount * type.bytes(), inPlaceBytes);
    }

    void source(Operation operation, MemorySegment segment, long count, DataType type) {
        operand(sources[operation.ordinal()], segment, count, type, false);
    }

    void destination(Operation operation, MemorySegment segment, long count, DataType type) {
        operand(destinations[operation.ordinal()], segment, count, type, true);
    }

    private void operand(String what, MemorySegment segment, long count, DataType type, boolean written) {
        Operands.check(what, segment, count, type, written);
        Operands.checkReach(what, segment, device);
    }

    void registered(MemorySegment memory) {
        operand("rank " + rank + ", memory to register", memory, memory.byteSize(), DataType.UINT8, true);
    }

    void rank(Operation operation, String role, int number) {
        if (number < 0 || number >= ranks) {
            throw new IllegalArgumentException("rank " + rank + ", " + operation.label() + ": there is no " + role + " "
                    + number + "; ranks are 0 to " + (ranks - 1));
        }
    }
}
