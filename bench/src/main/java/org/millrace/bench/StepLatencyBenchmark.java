package org.millrace.bench;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.HdrHistogram.Histogram;
import org.millrace.bench.comparator.CLibrary;
import org.millrace.bench.measure.Loop;
import org.millrace.bench.measure.Percentiles;
import org.millrace.bench.ring.OtherSide;
import org.millrace.bench.ring.RingProtocol;
import org.millrace.bench.ring.RingRole;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Param;

/** Time of each round trip of protocol Simple without data. */
public class StepLatencyBenchmark extends PairBenchmark {

    private static final int STEPS = 20_000;

    /** Location of the two sides: {@code threads} of this process, or {@code processes}. */
    @Param({"threads", "processes"})
    public String between;

    /**
     * Latencies: {@code measured}, or {@code corrected} for coordinated omission. While a step was slow, the next steps
     * were posted late. The corrected distribution contains the latencies that they would have had.
     */
    @Param({"measured", "corrected"})
    public String latency;

    private long[] nanos;
    private MemorySegment nanosOfC;

    @Override
    Loop loop(CLibrary c) throws IOException {
        OtherSide other = opened(OtherSide.of(between));
        nanos = new long[STEPS];
        nanosOfC = c == null ? null : Arena.global().allocate(ValueLayout.JAVA_LONG, STEPS);
        return other.with(
                c == null ? RingProtocol.timedDevice(other.ring(), nanos)
                        : RingProtocol.timedDevice(other.ring(), nanosOfC, c),
                new RingRole(RingProtocol.SIMPLE, 0, c != null));
    }

    /**
     * Makes steps and records their times, without the first, which contains the start of the other side.
     *
     * @param percentiles receives the times
     */
    @Benchmark
    public void steps(Percentiles percentiles) {
        run(STEPS);
        Histogram recorded = new Histogram(3);
        for (int step = 1; step < STEPS; step++) {
            recorded.recordValue(nanosOfC == null ? nanos[step] : nanosOfC.getAtIndex(ValueLayout.JAVA_LONG, step));
        }
        percentiles.record(latency.equals("measured") ? recorded
                : recorded.copyCorrectedForCoordinatedOmission(Math.max(1, recorded.getValueAtPercentile(50))));
    }
}
