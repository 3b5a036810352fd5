package org.millrace.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The benchmark of objects gathers the same objects in each way. */
class ObjectGatherBenchmarkTest {

    private static final int ORDERS = 100;

    @ParameterizedTest
    @EnumSource
    void bothRanksObjectsArrive(ObjectGatherBenchmark.Way way) throws Exception {
        ObjectGatherBenchmark benchmark = new ObjectGatherBenchmark();
        benchmark.orders = ORDERS;
        benchmark.way = way;
        benchmark.setUp();
        List<ObjectGatherBenchmark.Order> expected = benchmark.book.orders();
        assertEquals(ORDERS, expected.size());
        assertEquals(expected, benchmark.alone().orders());
        assertEquals(List.of(expected, expected),
                benchmark.allGather().stream().map(ObjectGatherBenchmark.Book::orders).toList());
        benchmark.tearDown();
    }
}
