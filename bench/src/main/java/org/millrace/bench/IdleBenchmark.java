package org.millrace.bench;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import org.HdrHistogram.Histogram;
import org.millrace.bench.comparator.CLibrary;
import org.millrace.bench.idle.IdleLoop;
import org.millrace.bench.idle.StepTimes;
import org.millrace.bench.idle.Waiting;
import org.millrace.bench.measure.Loop;
import org.millrace.bench.measure.Partner;
import org.millrace.bench.measure.Percentiles;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Param;

/**
 * Delay until a waiting thread sees a step, and the share of a core that it uses meanwhile. One thread posts steps at
 * set times. The other waits with one of Millrace's idle strategies, or with the same strategy in C. Latency counts
 * from the time at which the step was due, so a delay does not hide the delays of the next steps.
 */
@Measurement(iterations = 3, time = 1)
public class IdleBenchmark extends PairBenchmark {

    private static final int LONGEST = 5_000;

    /** Behavior of the waiting thread. */
    @Param
    public Waiting idle;

    /** Microseconds between two steps. */
    @Param({"20", "1000"})
    public int interval;

    private Partner partner;
    private long[] nanos;
    private MemorySegment nanosOfC;

    @Override
    Loop loop(CLibrary c) {
        partner = partner();
        StepTimes steps = new StepTimes();
        nanos = new long[LONGEST];
        nanosOfC = c == null ? null : Arena.global().allocate(ValueLayout.JAVA_LONG, LONGEST);
        Loop waiter = c == null ? new IdleLoop(steps, idle, nanos)
                : c.loop("idle_wait", steps.memory(),
                        Arena.global()
                                .allocateFrom(ValueLayout.JAVA_LONG, idle.spins(), idle.yields(), idle.minParkNanos(),
                                        idle.maxParkNanos(), nanosOfC.address()));
        return count -> {
            steps.reset();
            partner.start(waiter, count);
            steps.post((int) count, interval * 1000L);
            return partner.await();
        };
    }

    /**
     * Posts steps for a tenth of a second.
     *
     * @param percentiles receives the delays
     */
    @Benchmark
    public void steps(Percentiles percentiles) {
        int count = 100_000 / interval;
        long cpu = cpuNanos();
        long begin = System.nanoTime();
        run(count);
        percentiles.use(cpuNanos() - cpu, System.nanoTime() - begin);
        Histogram recorded = new Histogram(3);
        for (int step = 0; step < count; step++) {
            recorded.recordValue(
                    Math.max(0, nanosOfC == null ? nanos[step] : nanosOfC.getAtIndex(ValueLayout.JAVA_LONG, step)));
        }
        percentiles.record(recorded);
    }

    private long cpuNanos() {
        return ManagementFactory.getThreadMXBean().getThreadCpuTime(partner.threadId());
    }
}
