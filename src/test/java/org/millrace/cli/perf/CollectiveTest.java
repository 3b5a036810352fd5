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

class CollectiveTest {

    private static final int RANKS = 4;
    private static final long COUNT = 24;

    /** PERFORMANCE.md of nccl-tests, for 4 ranks. */
    @ParameterizedTest
    @CsvSource({"ALL_REDUCE, 1.5", "ALL_GATHER, 0.75", "REDUCE_SCATTER, 0.75", "BROADCAST, 1", "REDUCE, 1",
            "ALLTOALL, 0.75", "GATHER, 0.75", "SCATTER, 0.75", "SENDRECV, 1"})
    void busFactorsAreThoseOfNcclTests(Collective collective, double factor) {
        assertEquals(factor, collective.busFactor(RANKS), 1e-12);
    }

    /** Every element of the receive operand of every rank is said once, and lies in some operand. */
    @ParameterizedTest
    @EnumSource
    void resultsCoverTheReceiveOperand(Collective collective) {
        for (int rank = 0; rank < RANKS; rank++) {
            List<Collective.Part> parts = collective.result(rank, RANKS, COUNT);
            long covered = parts.stream().mapToLong(Collective.Part::count).sum();
            boolean hasResult =
                    collective != Collective.REDUCE && collective != Collective.GATHER || rank == Collective.ROOT;
            assertEquals(hasResult ? collective.receiveCount(COUNT, RANKS) : 0, covered);
            for (Collective.Part part : parts) {
                assertEquals(true, part.first() >= 0
                        && part.first() + part.count() <= collective.sendCount(COUNT, RANKS) && part.source() < RANKS,
                        part.toString());
            }
        }
    }

    @Test
    void partsComeFromWhereTheyMust() {
        assertEquals(List.of(Collective.Part.copied(0, 10, 5), Collective.Part.copied(1, 10, 5),
                Collective.Part.copied(2, 10, 5)), Collective.ALLTOALL.result(2, 3, 5));
        assertEquals(List.of(Collective.Part.reduced(10, 5)), Collective.REDUCE_SCATTER.result(2, 3, 5));
        assertEquals(List.of(Collective.Part.copied(Collective.ROOT, 10, 5)), Collective.SCATTER.result(2, 3, 5));
        assertEquals(List.of(), Collective.GATHER.result(2, 3, 5));
        assertEquals(List.of(Collective.Part.copied(2, 0, 5)), Collective.SENDRECV.result(0, 3, 5));
        assertEquals(List.of(Collective.Part.copied(Collective.ROOT, 0, 5)), Collective.BROADCAST.result(2, 3, 5));
    }

    @Test
    void inPlaceARankHasItsPartOfTheOneOperand() {
        PerfCase line = new PerfCase(0, DataType.FLOAT32, Reduction.SUM, RANKS * COUNT, 0, 1);
        MemorySegment memory = Arena.ofAuto().allocate(line.bytes(), 4);
        MemorySegment other = Arena.ofAuto().allocate(line.bytes(), 4);
        long third = 3 * COUNT * Float.BYTES;
        Placed gather = Placed.of(line, plan(Collective.ALL_GATHER, line), 3, memory, memory);
        assertEquals(memory.asSlice(third, COUNT * Float.BYTES), gather.from());
        assertEquals(memory, gather.to());
        Placed scatter = Placed.of(line, plan(Collective.REDUCE_SCATTER, line), 3, memory, memory);
        assertEquals(memory, scatter.from());
        assertEquals(memory.asSlice(third, COUNT * Float.BYTES), scatter.to());
        Placed apart = Placed.of(line, plan(Collective.ALL_GATHER, line), 3, memory, other);
        assertEquals(memory.asSlice(0, COUNT * Float.BYTES), apart.from());
        assertEquals(COUNT, apart.count());
        Placed same = Placed.of(line, plan(Collective.ALL_REDUCE, line), 3, memory, memory);
        assertEquals(List.of(true, false), List.of(same.isSame(), gather.isSame()));
    }

    private static PerfPlan plan(Collective collective, PerfCase line) {
        return new PerfPlan(collective, RANKS, List.of(line), Checking.AFTERWARDS, 1, java.time.Duration.ofSeconds(1));
    }
}
