package org.millrace.bench;

import java.util.ArrayDeque;
import java.util.concurrent.TimeUnit;
import java.util.Deque;
import org.millrace.bench.comparator.CLibrary;
import org.millrace.bench.measure.Cores;
import org.millrace.bench.measure.Loop;
import org.millrace.bench.measure.Partner;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * A loop of Java beside the same loop of C. Each has JVMs of its own, whose measuring thread is bound to the first
 * core. JMH calls a loop once for a batch, so that a call costs a loop of C almost nothing for each operation.
 *
 * <p>
 * A JVM waits for compilations (-Xbatch) and does not use C1, so every sample runs code that C2 has compiled.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(
        value = 3,
        jvmArgsAppend = {"-Xms256m", "-Xmx256m", "-XX:+UseSerialGC", "-Xbatch", "-XX:-TieredCompilation",
                "-XX:+IgnoreUnrecognizedVMOptions", "--enable-native-access=ALL-UNNAMED",
                "-Dlog4j.provider=org.apache.logging.log4j.simple.internal.SimpleProvider"})
@Warmup(iterations = 5, time = 100, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 10, time = 100, timeUnit = TimeUnit.MILLISECONDS)
public abstract class PairBenchmark {

    /**
     * Number of calls after which the JIT compiles the whole method, and not only its loop. Without that, every batch
     * would enter the loop through the interpreter.
     */
    private static final int COMPILING_CALLS = 2000;
    private static final int COMPILING_COUNT = 64;
    private static final long COMPILING_NANOS = 500_000_000L;

    /** Language of a loop. */
    public enum Side {
        /** Java's loop. */
        JAVA,
        /** C's loop, compiled on this machine. */
        C
    }

    /** Language of the loop. */
    @Param
    public Side side;

    private final Deque<AutoCloseable> opened = new ArrayDeque<>();
    private Loop loop;

    /** For JMH. */
    PairBenchmark() {}

    /**
     * Creates the loop.
     *
     * @param c the comparators for C's loop, null for Java's
     * @return the loop
     * @throws Exception if this machine lacks a resource
     */
    abstract Loop loop(CLibrary c) throws Exception;

    /** Keeps a resource until the end of the measurement. */
    final <T extends AutoCloseable> T opened(T resource) {
        opened.push(resource);
        return resource;
    }

    /** Starts a second thread, which is bound to another core. */
    final Partner partner() {
        if (!Cores.ofThisProcess().two()) {
            throw new IllegalStateException("two threads that spin need two cores");
        }
        return opened(new Partner(Cores.ofThisProcess()));
    }

    /**
     * Creates the loop and runs it until the compiler has seen it.
     *
     * @throws Exception if this machine lacks a resource
     */
    @Setup
    public void setUp() throws Exception {
        Cores.ofThisProcess().pinToFirst();
        loop = loop(side == Side.C ? CLibrary.ofThisJvm() : null);
        long begin = System.nanoTime();
        for (int call = 0; call < COMPILING_CALLS && System.nanoTime() - begin < COMPILING_NANOS; call++) {
            run(1 + call % COMPILING_COUNT);
        }
    }

    /** Runs the loop. Throws if its other side did not answer. */
    final long run(int count) {
        long result = loop.run(count);
        if (result == Loop.LOST) {
            throw new IllegalStateException("the other side did not answer");
        }
        return result;
    }

    /**
     * Closes the resources.
     *
     * @throws Exception if one cannot be closed
     */
    @TearDown
    public void tearDown() throws Exception {
        while (!opened.isEmpty()) {
            opened.pop().close();
        }
    }
}
