package org.millrace.cli.perf;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.millrace.DataType;
import org.millrace.Operation;
import org.millrace.cli.perf.CollectiveCall.Part;

class CollectiveCallTest {

    private static final int RANKS = 4;
    private static final long COUNT = 24;
    private static final int ROOT = CollectiveCall.ROOT;

    /**
     * The parts of a result cover every element of a rank's receive operand once. Each part's source lies in an
     * operand.
     */
    @ParameterizedTest
    @EnumSource
    void resultsCoverTheReceiveOperand(Operation operation) {
        CollectiveCall call = new CollectiveCall(operation, RANKS);
        for (int rank = 0; rank < RANKS; rank++) {
            List<Part> parts = call.result(rank, COUNT);
            long covered = parts.stream().mapToLong(Part::count).sum();
            boolean hasResult = operation != Operation.REDUCE && operation != Operation.GATHER || rank == ROOT;
            assertEquals(hasResult ? operation.receiveCount(COUNT, RANKS) : 0, covered);
            for (Part part : parts) {
                assertEquals(true, part.first() >= 0 && part.first() + part.count() <= operation.sendCount(COUNT, RANKS)
                        && part.source() < RANKS, part.toString());
            }
        }
    }

    private static List<Part> result(Operation operation, int rank) {
        return new CollectiveCall(operation, 3).result(rank, 5);
    }

    @Test
    void partsComeFromWhereTheyMust() {
        assertEquals(List.of(Part.copied(0, 10, 5), Part.copied(1, 10, 5), Part.copied(2, 10, 5)),
                result(Operation.ALL_TO_ALL, 2));
        assertEquals(List.of(Part.reduced(10, 5)), result(Operation.REDUCE_SCATTER, 2));
        assertEquals(List.of(Part.copied(ROOT, 10, 5)), result(Operation.SCATTER, 2));
        assertEquals(List.of(), result(Operation.GATHER, 2));
        assertEquals(List.of(Part.copied(2, 0, 5)), result(Operation.SEND_RECEIVE, 0));
        assertEquals(List.of(Part.copied(ROOT, 0, 5)), result(Operation.BROADCAST, 2));
    }

    @Test
    void inPlaceARankHasItsPartOfTheOneOperand() {
        long bytes = RANKS * COUNT * Float.BYTES;
        MemorySegment memory = Arena.ofAuto().allocate(bytes, 4);
        MemorySegment other = Arena.ofAuto().allocate(bytes, 4);
        long third = 3 * COUNT * Float.BYTES;
        OperandBuffers gather = buffers(Operation.ALL_GATHER, memory, memory);
        assertEquals(memory.asSlice(third, COUNT * Float.BYTES), gather.send());
        assertEquals(memory, gather.receive());
        OperandBuffers scatter = buffers(Operation.REDUCE_SCATTER, memory, memory);
        assertEquals(memory, scatter.send());
        assertEquals(memory.asSlice(third, COUNT * Float.BYTES), scatter.receive());
        OperandBuffers apart = buffers(Operation.ALL_GATHER, memory, other);
        assertEquals(memory.asSlice(0, COUNT * Float.BYTES), apart.send());
        assertEquals(COUNT, apart.count());
        OperandBuffers same = buffers(Operation.ALL_REDUCE, memory, memory);
        assertEquals(List.of(true, false), List.of(same.overwritesOperand(), gather.overwritesOperand()));
    }

    private static OperandBuffers buffers(Operation operation, MemorySegment send, MemorySegment receive) {
        return OperandBuffers.of(new CollectiveCall(operation, RANKS), DataType.FLOAT32, Reduction.SUM, RANKS * COUNT,
                3, send, receive);
    }
}
