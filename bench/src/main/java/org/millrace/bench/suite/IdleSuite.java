package org.millrace.bench.suite;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.List;
import org.HdrHistogram.Histogram;
import org.millrace.bench.idle.IdleLoop;
import org.millrace.bench.idle.StepTimes;
import org.millrace.bench.idle.Waiting;
import org.millrace.bench.measure.Loop;

/** Delay until a waiting thread sees a step, and the share of a core that it uses meanwhile. */
public final class IdleSuite implements Suite {

    private static final int ALWAYS = 1 << 30;
    private static final List<Waiting> WAYS = List.of(new Waiting("spin", "spin", ALWAYS, 0, 1, 1),
            new Waiting("yield", "100 spins, then yield", 100, ALWAYS, 1, 1),
            new Waiting("backoff", "100 spins, 100 yields, then park 1 µs to 1 ms", 100, 100, 1_000, 1_000_000),
            new Waiting("park", "park 50 µs", 0, 0, 50_000, 50_000));
    private static final int ROUNDS = 3;
    private static final int WARM_UP_STEPS = 2_000;
    private static final long WARM_UP_INTERVAL = 2_000;

    /** Frequency of steps. */
    private enum Pace {
        BUSY("every-20us", "a step every 20 µs", 20_000, 5_000),
        CALM("every-1ms", "a step every millisecond", 1_000_000, 100);

        private final String variant;
        private final String title;
        private final long interval;
        private final int steps;

        Pace(String variant, String title, long interval, int steps) {
            this.variant = variant;
            this.title = title;
            this.interval = interval;
            this.steps = steps;
        }
    }

    @Override
    public String name() {
        return "idle";
    }

    @Override
    public String title() {
        return "Idle strategies: latency against CPU";
    }

    @Override
    public String description() {
        return "One thread posts steps at set times, the other waits for them with one of Millrace's idle "
                + "strategies, or with the same strategy in C. Latency "
                + "counts from the time at which the step should have come, so that a delay does not hide what came "
                + "meanwhile. CPU is what the waiting thread " + "burnt of a core.";
    }

    @Override
    public List<String> variants(boolean full) {
        return List.of(Pace.BUSY.variant, Pace.CALM.variant);
    }

    @Override
    public void run(String variant, Bench bench) {
        if (!bench.cores().two()) {
            bench.note("idle strategies need two cores: the poster spins");
            return;
        }
        Pace pace = variant.equals(Pace.BUSY.variant) ? Pace.BUSY : Pace.CALM;
        try (Partner partner = new Partner(bench.cores())) {
            for (Waiting way : WAYS) {
                if (bench.wants(way.id())) {
                    measure(way, pace, partner, bench);
                }
            }
        }
    }

    private static void measure(Waiting way, Pace pace, Partner partner, Bench bench) {
        StepTimes steps = new StepTimes();
        long[] javaTimes = new long[Math.max(pace.steps, WARM_UP_STEPS)];
        MemorySegment cTimes = Arena.global().allocate(ValueLayout.JAVA_LONG, pace.steps);
        MemorySegment arguments = Arena.global()
                .allocateFrom(ValueLayout.JAVA_LONG, way.spins(), way.yields(), way.minParkNanos(), way.maxParkNanos(),
                        cTimes.address());
        Side java = new Side(new IdleLoop(steps, way, javaTimes));
        Side c = bench.c().isPresent() ? new Side(bench.c().loop("idle_wait", steps.memory(), arguments)) : null;
        java.run(steps, WARM_UP_STEPS, WARM_UP_INTERVAL, partner); // lets the compiler finish
        java.forget();
        for (int round = 0; round < ROUNDS; round++) {
            java.run(steps, pace.steps, pace.interval, partner);
            java.record(Arrays.copyOf(javaTimes, pace.steps));
            if (c != null) {
                c.run(steps, pace.steps, pace.interval, partner);
                c.record(cTimes.toArray(ValueLayout.JAVA_LONG));
            }
        }
        java.add(way, pace, "java", bench);
        if (c != null) {
            c.add(way, pace, "c", bench);
        }
    }

    /** Java's or C's part. */
    private static final class Side {

        private final Loop loop;
        private final Histogram histogram = new Histogram(3);
        private long cpuNanos;
        private long wallNanos;

        Side(Loop loop) {
            this.loop = loop;
        }

        void run(StepTimes steps, int count, long interval, Partner partner) {
            steps.reset();
            long cpu = ManagementFactory.getThreadMXBean().getThreadCpuTime(partner.threadId());
            long begin = System.nanoTime();
            partner.start(loop, count);
            steps.post(count, interval);
            partner.await();
            wallNanos += System.nanoTime() - begin;
            cpuNanos += ManagementFactory.getThreadMXBean().getThreadCpuTime(partner.threadId()) - cpu;
        }

        void forget() {
            cpuNanos = 0;
            wallNanos = 0;
        }

        void record(long[] times) {
            for (long time : times) {
                histogram.recordValue(Math.max(0, time));
            }
        }

        void add(Waiting way, Pace pace, String side, Bench bench) {
            bench.add(new Bench.Distribution(way.id(), way.title() + ", " + pace.title, side, histogram,
                    (double) cpuNanos / wallNanos));
        }
    }
}
