package org.millrace.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.List;
import java.util.function.Consumer;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.millrace.bench.access.Access;
import org.millrace.bench.comparator.CLibrary;
import org.millrace.bench.comparator.CompiledLibrary;
import org.millrace.bench.idle.Waiting;
import org.millrace.bench.measure.Cores;
import org.millrace.bench.measure.Loop;
import org.millrace.bench.measure.Percentiles;
import org.millrace.bench.PairBenchmark.Side;

/** Both loops of the benchmarks run, with few operations and without JMH. */
class BenchmarksTest {

    private static final int COUNT = 7;

    @BeforeAll
    static void compile() {
        assumeTrue(CompiledLibrary.version() != null, "no C compiler here: no benchmark has both sides");
    }

    @Test
    void accesses() throws Exception {
        for (String memory : List.of("array", "native", "mapped")) {
            both(new AccessBenchmark(), benchmark -> {
                benchmark.memory = memory;
                benchmark.access = Access.DATA_RELEASE;
            });
        }
        AccessBenchmark locked = new AccessBenchmark();
        locked.memory = "write-combined";
        locked.access = Access.GET_AND_ADD;
        assertThrows(IllegalStateException.class, () -> locked.loop(null));
    }

    @Test
    void accessesBesideAnotherThread() throws Exception {
        assumeTrue(Cores.ofThisProcess().two(), "one core");
        for (String other : List.of("polled", "written")) {
            both(new ContendedBenchmark(), benchmark -> {
                benchmark.memory = "native";
                benchmark.other = other;
                benchmark.access = Access.GET_AND_ADD;
            });
        }
    }

    @Test
    void crossings() throws Exception {
        for (String call : List.of("plain", "critical", "errno", "upcall")) {
            both(new CrossingBenchmark(), benchmark -> benchmark.call = call);
        }
        for (String way : List.of("static.get_acquire", "local.set_release", "instance.get_and_add",
                "buffer.get_acquire", "array.set_release", "atomics.get_and_add", "chronicle.set_volatile",
                "descriptors.size_plain")) {
            both(new WayBenchmark(), benchmark -> benchmark.access = way);
        }
    }

    @Test
    void ringsBetweenThreadsAndProcesses() throws Exception {
        assumeTrue(Cores.ofThisProcess().two(), "one core");
        for (String between : List.of("threads", "processes")) {
            both(new StepBenchmark(), benchmark -> {
                benchmark.between = between;
                benchmark.inFlight = 8;
                benchmark.protocol = "LL128.480";
            });
        }
        both(new FifoBenchmark(), benchmark -> benchmark.fifo = "work");
        both(new FifoBenchmark(), benchmark -> benchmark.fifo = "constant");
    }

    @Test
    void frames() throws Exception {
        assumeTrue(Cores.ofThisProcess().two(), "one core");
        for (String network : List.of("socket", "shm")) {
            for (String shape : List.of("roundtrip", "stream")) {
                both(new FrameBenchmark(), benchmark -> {
                    benchmark.network = network;
                    benchmark.shape = shape;
                    benchmark.bytes = 4096;
                });
            }
        }
    }

    @Test
    void idleThreadsSeeTheirSteps() throws Exception {
        assumeTrue(Cores.ofThisProcess().two(), "one core");
        for (Waiting idle : Waiting.values()) {
            both(new IdleBenchmark(), benchmark -> {
                benchmark.idle = idle;
                benchmark.interval = 20;
            });
        }
    }

    @Test
    void proxiesInC() {
        ProxyInCBenchmark benchmark = new ProxyInCBenchmark();
        for (String work : List.of("pass.16", "step.4096")) {
            benchmark.work = work;
            benchmark.setUp();
            assertNotEquals(Loop.LOST, benchmark.loop());
        }
    }

    @Test
    void percentilesAreThoseOfTheIteration() {
        Percentiles percentiles = new Percentiles();
        org.HdrHistogram.Histogram histogram = new org.HdrHistogram.Histogram(3);
        for (int nanos = 1; nanos <= 1000; nanos++) {
            histogram.recordValue(nanos);
        }
        percentiles.record(histogram);
        percentiles.use(1, 4);
        assertEquals(List.of(500L, 990L, 999L, 25.0),
                List.of(percentiles.p50(), percentiles.p99(), percentiles.p999(), percentiles.cpu()));
        percentiles.reset();
        assertEquals(List.of(0L, 0.0), List.of(percentiles.p999(), percentiles.cpu()));
    }

    @Test
    void aJvmMeasuresOneKindOfMemory() {
        FenceBenchmark benchmark = new FenceBenchmark();
        benchmark.memory = "array";
        benchmark.setUp();
        benchmark.slotThenHead();
        assertEquals(1, benchmark.headThenSlot());
        benchmark.memory = "native";
        assertTrue(assertThrows(IllegalStateException.class, benchmark::setUp).getMessage().contains("array"));
    }

    private static <T extends PairBenchmark> void both(T benchmark, Consumer<T> parameters) throws Exception {
        parameters.accept(benchmark);
        for (Side side : Side.values()) {
            try {
                assertNotEquals(Loop.LOST, benchmark.loop(side == Side.C ? CLibrary.ofThisJvm() : null).run(COUNT));
            } finally {
                benchmark.tearDown();
            }
        }
    }
}
