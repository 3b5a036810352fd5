package org.millrace.cli.perf;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.millrace.DataType;
import org.millrace.Operation;

class PerfPlanTest {

    @Test
    void sizesGrowByAFactorOrAStep() {
        assertEquals(List.of(8L, 16L, 32L), new PerfPlan.Sizes(8, 63, 2, 0).list());
        assertEquals(List.of(8L, 16L, 32L, 64L), new PerfPlan.Sizes(8, 64, 2, 0).list());
        assertEquals(List.of(8L, 18L, 28L), new PerfPlan.Sizes(8, 30, 1, 10).list());
        assertEquals(List.of(5L), new PerfPlan.Sizes(5, 5, 2, 0).list());
        assertEquals(List.of(0L), new PerfPlan.Sizes(0, 64, 2, 0).list());
    }

    @Test
    void sizesEndBeforeTheyOverflow() {
        List<Long> sizes = new PerfPlan.Sizes(1L << 60, Long.MAX_VALUE, 2, 0).list();
        assertEquals(List.of(1L << 60, 1L << 61, 1L << 62), sizes);
    }

    @Test
    void theDefaultRunIsTheTableOf24Lines() {
        List<PerfPlan.Case> cases = PerfPlan.cases(List.of(DataType.FLOAT32), List.of(Reduction.SUM),
                new PerfPlan.Sizes(8, 64 << 20, 2, 0), 1, 0, -1);
        assertEquals(24, cases.size());
        assertEquals(new PerfPlan.Case(0, DataType.FLOAT32, Reduction.SUM, 2, 10_000, 20_000), cases.getFirst());
        assertEquals(new PerfPlan.Case(23, DataType.FLOAT32, Reduction.SUM, 16 << 20, 1, 4), cases.getLast());
        long moved = cases.stream().mapToLong(line -> 2 * line.bytes() * (line.iterations() + line.warmup() + 1)).sum();
        assertTrue(moved < 40L << 30, "at 1 GB/s more than 43 s: " + moved);
    }

    /**
     * Number of operations that warm up the JVM before the table's first line. This number is small if the table's
     * first line itself has few operations, or if each operation is checked.
     */
    @Test
    void manyOperationsComeBeforeAFirstLineOfManyOnly() {
        assertEquals(30_000, plan(8, 0, -1, PerfPlan.Checking.AFTERWARDS).starters());
        assertEquals(30_000, plan(8, 0, -1, PerfPlan.Checking.NONE).starters());
        assertEquals(300, plan(8, 0, -1, PerfPlan.Checking.EVERY).starters());
        assertEquals(256, plan(1 << 20, 0, -1, PerfPlan.Checking.AFTERWARDS).starters());
        assertEquals(32, plan(8 << 20, 0, -1, PerfPlan.Checking.AFTERWARDS).starters());
        assertEquals(300, plan(8, 1000, -1, PerfPlan.Checking.AFTERWARDS).starters());
    }

    @Test
    void aWarmUpThatTheUserGaveIsAll() {
        assertEquals(0, plan(8, 0, 5, PerfPlan.Checking.AFTERWARDS).starters());
        assertEquals(5000, plan(64 << 20, 0, 5000, PerfPlan.Checking.AFTERWARDS).cases().getFirst().warmup());
    }

    @Test
    void anAutomaticWarmUpOfLargeOperationsIsBoundedByBytes() {
        assertEquals(64, plan(4 << 20, 0, -1, PerfPlan.Checking.AFTERWARDS).cases().getFirst().warmup());
        assertEquals(4, plan(64 << 20, 1000, -1, PerfPlan.Checking.AFTERWARDS).cases().getFirst().warmup());
    }

    private static PerfPlan plan(long bytes, int iterations, int warmup, PerfPlan.Checking checking) {
        return new PerfPlan(Operation.ALL_REDUCE, 2,
                PerfPlan.cases(List.of(DataType.FLOAT32), List.of(Reduction.SUM),
                        new PerfPlan.Sizes(bytes, bytes, 2, 0), 1, iterations, warmup),
                checking, 1, Duration.ofSeconds(1), false, false, warmup < 0);
    }

    @Test
    void sizesAreRoundedDownToElementsAndMeasuredOnce() {
        List<PerfPlan.Case> cases = PerfPlan.cases(List.of(DataType.FLOAT64), List.of(Reduction.SUM, Reduction.MAX),
                new PerfPlan.Sizes(5, 20, 1, 3), 1, 7, 0);
        assertEquals(List.of(0L, 8L, 16L, 0L, 8L, 16L), cases.stream().map(PerfPlan.Case::bytes).toList());
        assertEquals(List.of(0, 1, 2, 3, 4, 5), cases.stream().map(PerfPlan.Case::index).toList());
        assertTrue(cases.stream().allMatch(line -> line.iterations() == 7 && line.warmup() == 0));
    }
}
