package org.millrace.cli.perf;

import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;
import org.millrace.Communicator;
import org.millrace.ReduceOp;
import org.millrace.Route;
import org.millrace.Stream;
import org.millrace.cli.check.OperandMemory;
import org.millrace.cli.check.PerfCase;
import org.millrace.cli.check.RandomOperands;
import org.millrace.cli.check.Reference;
import org.millrace.cli.launch.CaseResult;
import org.millrace.cli.launch.RankEvent;
import org.millrace.cli.launch.RunDeadline;

/** The part of a run for which there is a communicator. */
final class Measurement {

    /**
     * After how many operations before the first line the ranks ask each other whether to go on, and after what time
     * they do not.
     */
    private static final int STARTERS_ROUND = 1000;
    private static final Duration STARTERS_TIME = Duration.ofSeconds(2);
    private static final int LARGE_STARTERS = 10;
    private static final long LARGE_STARTER_BYTES = 1 << 20;

    private final PerfPlan plan;
    private final int rank;
    private final Communicator communicator;
    private final Stream stream;
    private final OperandMemory memory;
    private final MemorySegment send;
    private final MemorySegment receive;
    private final RunDeadline deadline;
    /** Wrong elements that no line of the table has shown yet. */
    private long wrongSoFar;
    private long checked;

    /**
     * A measurement.
     *
     * @param send    has room for the largest operand
     * @param receive has room for the largest operand
     */
    Measurement(PerfPlan plan, Communicator communicator, Stream stream, OperandMemory memory, MemorySegment send,
            MemorySegment receive, RunDeadline deadline) {
        this.plan = plan;
        this.rank = communicator.rank();
        this.communicator = communicator;
        this.stream = stream;
        this.memory = memory;
        this.send = send;
        this.receive = receive;
        this.deadline = deadline;
    }

    /** Measures all lines. */
    void run(Consumer<RankEvent> events) {
        PerfCase first = plan.cases().getFirst();
        smallStarters(first);
        starters(first, Math.min(LARGE_STARTER_BYTES, plan.largestBytes()), LARGE_STARTERS);
        for (PerfCase line : plan.cases()) {
            CaseResult outOfPlace = sample(line, false);
            CaseResult inPlace = sample(line, true);
            communicator.route()
                    .ifPresent(
                            route -> events.accept(new RankEvent.Routed(rank, line.index(), new Route(route.algorithm(),
                                    route.protocol(), route.mode(), route.transports(), List.of()))));
            events.accept(new RankEvent.Measured(rank, line.index(), outOfPlace, inPlace));
        }
    }

    /**
     * Bounded: on a machine of too few cores, or a slow network, so many would take longer than everything after them.
     */
    private void smallStarters(PerfCase first) {
        CommonClock clock = new CommonClock(communicator, stream, memory, STARTERS_TIME);
        for (int left = plan.starters(); left > 0; left -= STARTERS_ROUND) {
            starters(first, plan.smallestBytes(), Math.min(left, STARTERS_ROUND));
            if (left > STARTERS_ROUND && clock.passed()) {
                return;
            }
        }
    }

    private void starters(PerfCase like, long bytes, int operations) {
        int parts = plan.collective().parts(plan.ranks());
        run(OperandBuffers.of(new PerfCase(0, like.type(), like.reduction(),
                bytes / like.type().bytes() / parts * parts, 0, operations), plan, rank, send, receive), operations);
    }

    /** One operation on fresh operands; the number of its wrong elements. */
    long check(PerfCase line, boolean inPlace) {
        return wrong(OperandBuffers.of(line, plan, rank, send, inPlace ? send : receive), Reference.of(line.type()),
                RandomOperands.of(plan.seed(), line.index(), inPlace));
    }

    private CaseResult sample(PerfCase line, boolean inPlace) {
        if (inPlace && !plan.collective().hasInPlace()) {
            return CaseResult.NONE;
        }
        OperandBuffers placed = OperandBuffers.of(line, plan, rank, send, inPlace ? send : receive);
        Reference reference = plan.check() ? Reference.of(line.type()) : null;
        if (reference != null) {
            memory.fill(placed.from(), line, reference, RandomOperands.of(~plan.seed(), line.index(), inPlace));
        }
        run(placed, line.warmup());
        long start = System.nanoTime();
        run(placed, line.iterations());
        double nanos = (double) (System.nanoTime() - start) / line.iterations();
        if (reference == null) {
            return new CaseResult(nanos, CaseResult.UNCHECKED);
        }
        long wrong = wrongSoFar + wrong(placed, reference, RandomOperands.of(plan.seed(), line.index(), inPlace));
        wrongSoFar = 0;
        return new CaseResult(nanos, wrong);
    }

    /** Operations one behind the other; or, where every one is checked, one at a time. */
    private void run(OperandBuffers placed, int operations) {
        if (plan.checking() != Checking.EVERY) {
            enqueue(placed, operations);
            return;
        }
        Reference reference = Reference.of(placed.line().type());
        for (int i = 0; i < operations; i++) {
            wrongSoFar += wrong(placed, reference,
                    RandomOperands.of(plan.seed() + ++checked, placed.line().index(), placed.isInPlace()));
        }
    }

    /** One more operation, on operands that the timed ones have not seen: what they left cannot pass for its result. */
    private long wrong(OperandBuffers placed, Reference reference, RandomOperands operands) {
        if (!placed.isSame()) {
            memory.poison(placed.to(), placed.line());
        }
        memory.fill(placed.from(), placed.line(), reference, operands);
        enqueue(placed, 1);
        return memory.countWrong(placed.to(), placed.line(), reference, operands,
                plan.collective().result(rank, plan.ranks(), placed.count()));
    }

    /** Operations one behind the other, and waits for the last. */
    private void enqueue(OperandBuffers placed, int operations) {
        ReduceOp op = placed.line().reduction().operation(rank);
        for (int i = 0; i < operations; i++) {
            plan.collective()
                    .enqueue(communicator, placed.from(), placed.to(), placed.count(), placed.line().type(), op,
                            stream);
        }
        stream.synchronize(deadline.remaining());
    }
}
