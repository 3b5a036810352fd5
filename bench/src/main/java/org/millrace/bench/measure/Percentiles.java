package org.millrace.bench.measure;

import org.HdrHistogram.Histogram;
import org.openjdk.jmh.annotations.AuxCounters;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** Latencies of single steps of an iteration, in nanoseconds, as JMH's secondary results. */
@AuxCounters(AuxCounters.Type.EVENTS)
@State(Scope.Thread)
public class Percentiles {

    private final Histogram histogram = new Histogram(3);
    private double cpuNanos;
    private double wallNanos;

    /** For JMH. */
    public Percentiles() {}

    /** Forgets the previous iteration. */
    @Setup(Level.Iteration)
    public void reset() {
        histogram.reset();
        cpuNanos = 0;
        wallNanos = 0;
    }

    /**
     * Adds latencies.
     *
     * @param latencies latencies in nanoseconds
     */
    public void record(Histogram latencies) {
        histogram.add(latencies);
    }

    /**
     * Adds the use of a core.
     *
     * @param cpu  processor time of the waiting thread, in nanoseconds
     * @param wall time of the measurement, in nanoseconds
     */
    public void use(long cpu, long wall) {
        cpuNanos += cpu;
        wallNanos += wall;
    }

    /** {@return the median} */
    public long p50() {
        return histogram.getValueAtPercentile(50);
    }

    /** {@return the latency that 1 % of the steps exceed} */
    public long p99() {
        return histogram.getValueAtPercentile(99);
    }

    /** {@return the latency that one step in a thousand exceeds} */
    public long p999() {
        return histogram.getValueAtPercentile(99.9);
    }

    /** {@return the share of a core that the waiting thread used, in percent; 0 if it was not measured} */
    public double cpu() {
        return wallNanos == 0 ? 0 : 100 * cpuNanos / wallNanos;
    }
}
