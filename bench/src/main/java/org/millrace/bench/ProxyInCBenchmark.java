package org.millrace.bench;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.TimeUnit;
import org.millrace.bench.comparator.CLibrary;
import org.millrace.bench.measure.Loop;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/**
 * Minimum work of {@link IdlePassBenchmark#pass} and {@link ProxyStepBenchmark#slice} in C: a pass reads one
 * {@code tail} for each connection, a step makes the accesses to the shared memory and the copy, and nothing else.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(value = 2, jvmArgsAppend = "--enable-native-access=ALL-UNNAMED")
@Warmup(iterations = 5, time = 200, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 5, time = 200, timeUnit = TimeUnit.MILLISECONDS)
public class ProxyInCBenchmark {

    private static final int PAGE = 4096;
    private static final int BATCH = 1000;

    /** Pass with a number of connections, or step with a number of bytes. */
    @Param({"pass.2", "pass.16", "pass.128", "pass.1024", "step.0", "step.4096", "step.1048576"})
    public String work;

    private Loop loop;

    /** Allocates the memory. */
    @Setup
    public void setUp() {
        int size = Integer.parseInt(work.substring(work.indexOf('.') + 1));
        if (work.startsWith("pass")) {
            loop = CLibrary.ofThisJvm()
                    .loop("proxy_pass", Arena.global().allocate((long) size * PAGE, PAGE),
                            Arena.global().allocateFrom(ValueLayout.JAVA_LONG, size, PAGE));
            return;
        }
        MemorySegment arguments = Arena.global()
                .allocateFrom(ValueLayout.JAVA_LONG, size, Arena.global().allocate(Math.max(size, 64), PAGE).address(),
                        Arena.global().allocate(Math.max(size, 64), PAGE).address());
        loop = CLibrary.ofThisJvm().loop("proxy_step", Arena.global().allocate(4L * PAGE, PAGE), arguments);
    }

    /**
     * Runs a batch.
     *
     * @return a value that depends on the work
     */
    @Benchmark
    @OperationsPerInvocation(BATCH)
    public long loop() {
        return loop.run(BATCH);
    }
}
