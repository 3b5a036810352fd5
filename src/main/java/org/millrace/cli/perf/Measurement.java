package org.millrace.cli.perf;

import java.lang.management.CompilationMXBean;
import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.Locale;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.millrace.ChannelWork;
import org.millrace.Communicator;
import org.millrace.Route;
import org.millrace.cli.run.RankWorker;

/** One rank's measurement of a plan, on an open communicator. */
final class Measurement {

    private static final int LARGE_STARTERS = 10;
    private static final long LARGE_STARTER_BYTES = 1 << 20;

    private final PerfPlan plan;
    private final int rank;
    private final Communicator communicator;
    private final CheckedCollectives collectives;
    private final PerfWarmUp warmUp;
    /** Number of wrong elements that were found since the last line of the table. */
    private long wrongSoFar;
    private long checked;

    Measurement(PerfPlan plan, Communicator communicator, CheckedCollectives collectives) {
        this.plan = plan;
        this.rank = communicator.rank();
        this.communicator = communicator;
        this.collectives = collectives;
        warmUp = new PerfWarmUp(System::nanoTime, collectives::forAny);
    }

    void run(RankWorker.Reporter reporter) {
        PerfPlan.Case first = plan.cases().getFirst();
        if (plan.warmsUp()) {
            BooleanSupplier compiling =
                    plan.starters() > PerfWarmUp.ROUND ? collectives.forAny(new CompilerWatch()::isBusy) : () -> false;
            starters(first, plan.smallestBytes(), plan.starters(), compiling);
            starters(first, Math.min(LARGE_STARTER_BYTES, plan.largestBytes()), LARGE_STARTERS, () -> false);
        }
        for (PerfPlan.Case line : plan.cases()) {
            PerfEvent.CaseResult outOfPlace = measure(line, false);
            PerfEvent.CaseResult inPlace = measure(line, true);
            communicator.route()
                    .map(route -> new Route(route.algorithm(), route.protocol(), route.mode(), route.transports(),
                            List.of()))
                    .ifPresent(route -> reporter.tell(new PerfEvent.Routed(rank, line.index(), route)));
            if (plan.profile()) {
                reporter.tell(
                        new PerfEvent.Profiled(rank, line.index(), KernelTimes.text(rank, communicator.recentWork())));
            }
            reporter.tell(new PerfEvent.Measured(rank, line.index(), outOfPlace, inPlace));
        }
    }

    private void starters(PerfPlan.Case like, long bytes, int operations, BooleanSupplier more) {
        OperandBuffers buffers = place(like, bytes / like.type().bytes(), false);
        warmUp.run(operations, bytes, more, round -> run(buffers, 0, round));
    }

    private OperandBuffers place(PerfPlan.Case line, long elements, boolean inPlace) {
        return collectives.place(plan.call(), line.type(), line.reduction(), elements, inPlace);
    }

    private PerfEvent.CaseResult measure(PerfPlan.Case line, boolean inPlace) {
        if (inPlace && !plan.collective().hasInPlace()) {
            return PerfEvent.CaseResult.NONE;
        }
        OperandBuffers buffers = place(line, line.count(), inPlace);
        if (plan.check()) {
            collectives.fill(buffers, RandomOperands.of(~plan.seed(), line.index(), inPlace));
        }
        if (plan.warmsUp()) {
            warmUp.run(line.warmup(), line.bytes(), () -> false, round -> run(buffers, line.index(), round));
        } else {
            run(buffers, line.index(), line.warmup());
        }
        long start = System.nanoTime();
        run(buffers, line.index(), line.iterations());
        double nanos = (double) (System.nanoTime() - start) / line.iterations();
        if (!plan.check()) {
            return new PerfEvent.CaseResult(nanos, PerfEvent.CaseResult.UNCHECKED);
        }
        long wrong =
                wrongSoFar + collectives.countWrong(buffers, RandomOperands.of(plan.seed(), line.index(), inPlace));
        wrongSoFar = 0;
        return new PerfEvent.CaseResult(nanos, wrong);
    }

    /** Detects a busy JIT compiler. On a machine with few cores the compiler is busy for seconds. */
    private static final class CompilerWatch {

        /**
         * Minimum time between two observations, in milliseconds. It is longer than the compilation of a large method.
         */
        private static final long LOOK_MILLIS = 300;
        /** The compiler is busy if it compiled for more than 1 / BUSY_PARTS of the time between two observations. */
        private static final long BUSY_PARTS = 10;

        private final @Nullable CompilationMXBean compiler = ManagementFactory.getCompilationMXBean();
        private boolean busy = compiler != null && compiler.isCompilationTimeMonitoringSupported();
        private long since = System.nanoTime();
        private long before = busy ? compiler.getTotalCompilationTime() : 0;

        boolean isBusy() {
            long millis = (System.nanoTime() - since) / 1_000_000;
            if (busy && millis >= LOOK_MILLIS) {
                long now = compiler.getTotalCompilationTime();
                busy = now - before > millis / BUSY_PARTS;
                before = now;
                since = System.nanoTime();
            }
            return busy;
        }
    }

    /**
     * Runs operations. If each operation is checked, waits for each operation. Otherwise waits for the last operation.
     */
    private void run(OperandBuffers buffers, int index, int operations) {
        if (plan.checking() != PerfPlan.Checking.EVERY) {
            collectives.run(buffers, operations);
            return;
        }
        for (int i = 0; i < operations; i++) {
            wrongSoFar += collectives.countWrong(buffers,
                    RandomOperands.of(plan.seed() + ++checked, index, buffers.inPlace()));
        }
    }

    /** Describes the run times of the last kernels, which the device has recorded. */
    private static final class KernelTimes {

        private KernelTimes() {}

        static String text(int rank, List<ChannelWork> works) {
            List<ChannelWork> complete = works.stream().filter(work -> work.completed() != -1).toList();
            if (complete.isEmpty()) {
                return "rank " + rank + ": the device does not say for how long kernels ran";
            }
            double ran = complete.stream().mapToLong(work -> work.completed() - work.started()).average().orElse(0);
            long longest = complete.stream().mapToLong(work -> work.completed() - work.started()).max().orElse(0);
            long channels = complete.stream().mapToInt(ChannelWork::channel).distinct().count();
            return String.format(Locale.ROOT, "rank %d: kernels ran for %.2f us, %.2f at most (the last %d on %d %s)%s",
                    rank, ran / 1e3, longest / 1e3, complete.size(), channels, channels == 1 ? "channel" : "channels",
                    between(complete));
        }

        /**
         * Returns the average time from the end of a kernel to the beginning of the next kernel on the same channel.
         */
        private static String between(List<ChannelWork> works) {
            long sum = 0;
            int pairs = 0;
            for (int i = 1; i < works.size(); i++) {
                ChannelWork before = works.get(i - 1);
                ChannelWork work = works.get(i);
                if (work.channel() == before.channel() && work.number() == before.number() + 1) {
                    sum += Math.max(0, work.started() - before.completed());
                    pairs++;
                }
            }
            return pairs == 0 ? "" : String.format(Locale.ROOT, ", %.2f us between two", sum / 1e3 / pairs);
        }
    }
}
