package org.millrace.cli.perf;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.millrace.DataType;
import org.millrace.cli.check.CollectiveCall;
import org.millrace.cli.check.PerfCase;
import org.millrace.cli.check.Reduction;

class CollectiveTest {

    private static final int RANKS = 4;
    private static final long COUNT = 24;

    /** PERFORMANCE.md of nccl-tests, for 4 ranks. */
    @ParameterizedTest
    @CsvSource({"ALL_REDUCE, 1.5", "ALL_GATHER, 0.75", "REDUCE_SCATTER, 0.75", "BROADCAST, 1", "REDUCE, 1",
            "ALLTOALL, 0.75", "GATHER, 0.75", "SCATTER, 0.75", "SENDRECV, 1"})
    void busFactorsAreThoseOfNcclTests(CollectiveCall collective, double factor) {
        assertEquals(factor, collective.busFactor(RANKS), 1e-12);
    }

    /** Every element of the receive operand of every rank is said once, and lies in some operand. */
    @ParameterizedTest
    @EnumSource
    void resultsCoverTheReceiveOperand(CollectiveCall collective) {
        for (int rank = 0; rank < RANKS; rank++) {
            List<CollectiveCall.Part> parts = collective.result(rank, RANKS, COUNT);
            long covered = parts.stream().mapToLong(CollectiveCall.Part::count).sum();
            boolean hasResult = collective != CollectiveCall.REDUCE && collective != CollectiveCall.GATHER
                    || rank == CollectiveCall.ROOT;
            assertEquals(hasResult ? collective.receiveCount(COUNT, RANKS) : 0, covered);
            for (CollectiveCall.Part part : parts) {
                assertEquals(true, part.first() >= 0
                        && part.first() + part.count() <= collective.sendCount(COUNT, RANKS) && part.source() < RANKS,
                        part.toString());
            }
        }
    }

    @Test
    void partsComeFromWhereTheyMust() {
        assertEquals(List.of(CollectiveCall.Part.copied(0, 10, 5), CollectiveCall.Part.copied(1, 10, 5),
                CollectiveCall.Part.copied(2, 10, 5)), CollectiveCall.ALLTOALL.result(2, 3, 5));
        assertEquals(List.of(CollectiveCall.Part.reduced(10, 5)), CollectiveCall.REDUCE_SCATTER.result(2, 3, 5));
        assertEquals(List.of(CollectiveCall.Part.copied(CollectiveCall.ROOT, 10, 5)),
                CollectiveCall.SCATTER.result(2, 3, 5));
        assertEquals(List.of(), CollectiveCall.GATHER.result(2, 3, 5));
        assertEquals(List.of(CollectiveCall.Part.copied(2, 0, 5)), CollectiveCall.SENDRECV.result(0, 3, 5));
        assertEquals(List.of(CollectiveCall.Part.copied(CollectiveCall.ROOT, 0, 5)),
                CollectiveCall.BROADCAST.result(2, 3, 5));
    }

    @Test
    void inPlaceARankHasItsPartOfTheOneOperand() {
        PerfCase line = new PerfCase(0, DataType.FLOAT32, Reduction.SUM, RANKS * COUNT, 0, 1);
        MemorySegment memory = Arena.ofAuto().allocate(line.bytes(), 4);
        MemorySegment other = Arena.ofAuto().allocate(line.bytes(), 4);
        long third = 3 * COUNT * Float.BYTES;
        OperandBuffers gather = OperandBuffers.of(line, plan(CollectiveCall.ALL_GATHER, line), 3, memory, memory);
        assertEquals(memory.asSlice(third, COUNT * Float.BYTES), gather.from());
        assertEquals(memory, gather.to());
        OperandBuffers scatter = OperandBuffers.of(line, plan(CollectiveCall.REDUCE_SCATTER, line), 3, memory, memory);
        assertEquals(memory, scatter.from());
        assertEquals(memory.asSlice(third, COUNT * Float.BYTES), scatter.to());
        OperandBuffers apart = OperandBuffers.of(line, plan(CollectiveCall.ALL_GATHER, line), 3, memory, other);
        assertEquals(memory.asSlice(0, COUNT * Float.BYTES), apart.from());
        assertEquals(COUNT, apart.count());
        OperandBuffers same = OperandBuffers.of(line, plan(CollectiveCall.ALL_REDUCE, line), 3, memory, memory);
        assertEquals(List.of(true, false), List.of(same.isSame(), gather.isSame()));
    }

    private static PerfPlan plan(CollectiveCall collective, PerfCase line) {
        return new PerfPlan(collective, RANKS, List.of(line), Checking.AFTERWARDS, 1, java.time.Duration.ofSeconds(1));
    }
}
