package org.millrace.bench;

import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.OperationsPerInvocation;

/** Time of one operation of a loop, of Java or of C. */
@OperationsPerInvocation(LoopBenchmark.BATCH)
public abstract class LoopBenchmark extends PairBenchmark {

    /** Number of operations of a batch. */
    static final int BATCH = 100_000;
    /**
     * Number of operations of a batch of single accesses. A loop of stores takes 0.4 ns for each store at the beginning
     * of a batch on AMD EPYC, and 0.27 after some 100 µs.
     */
    static final int LONG_BATCH = 2_000_000;

    /** For JMH. */
    LoopBenchmark() {}

    /** Returns the number of operations of a batch, which the class's annotation repeats. */
    int batch() {
        return BATCH;
    }

    /**
     * Runs a batch.
     *
     * @return a value that depends on the work
     */
    @Benchmark
    public long loop() {
        return run(batch());
    }
}
