package org.millrace.cli.perf;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.millrace.DataType;
import org.millrace.Operation;

/**
 * Plan of a measurement. Each rank derives the plan from the command line alone, so that all ranks have the same plan
 * without exchanging it.
 */
public record PerfPlan(Operation collective, int ranks, List<Case> cases, Checking checking, long seed,
        Duration deadline, boolean profile, boolean register, boolean warmsUp) {

    /** Selection of the operations that are checked: their results are compared with a reference. */
    public enum Checking {
        /** No operation: the run only measures times. */
        NONE,
        /** One additional operation after the timed operations, on separate operands. */
        AFTERWARDS,
        /**
         * Every operation, each on separate operands, because a planted fault may hit any operation. The times then
         * include filling and comparing the operands.
         */
        EVERY
    }

    /**
     * One line of the table.
     *
     * @param count  number of elements of one rank's larger operand. The call receives a smaller count if the other
     *               operand is only a part of the larger operand
     * @param warmup number of operations before the timed operations; an upper bound if the plan warms up automatically
     */
    public record Case(int index, DataType type, Reduction reduction, long count, int warmup, int iterations) {

        long bytes() {
            return count * type.bytes();
        }

        @Override
        public String toString() {
            return bytes() + " B " + type.label() + " " + reduction;
        }
    }

    /**
     * Sizes as in nccl-tests, from the smallest to the largest. Each size is the previous size multiplied by a factor
     * or increased by a step.
     *
     * @param max    upper limit of all sizes, in bytes
     * @param factor quotient of a size and the previous size; 1 if {@code step} is used
     * @param step   difference of a size and the previous size, in bytes; 0 if {@code factor} is used
     */
    record Sizes(long min, long max, int factor, long step) {

        List<Long> list() {
            List<Long> sizes = new ArrayList<>();
            // The list ends at the largest size, or before the first size that is not larger than the previous size.
            // The second case happens with factor 0.
            for (long size = min; size <= max && (sizes.isEmpty() || size > sizes.getLast()); size =
                    size * factor + step) {
                sizes.add(size);
            }
            return sizes;
        }
    }

    /**
     * Bounds for the default number of timed operations of a line. The JIT compiler uses the cores for a few
     * milliseconds, which hardly changes the average of 20,000 operations that take microseconds. For large operands, a
     * line moves at most BYTES_PER_LINE for each rank, but runs at least 4 operations.
     */
    private static final long BYTES_PER_LINE = 256L << 20;
    private static final int MAX_ITERATIONS = 20_000;
    private static final int FEWEST_ITERATIONS = 4;
    /**
     * Number of warm-up operations of the table's first line, during which the JIT compiler is busy. Without the
     * warm-up, small operations would run in the interpreter during the measurement.
     */
    private static final int WARMUP_OF_THE_FIRST = 10_000;
    /**
     * Number of warm-up operations of the sizes from FIRST_OF_LOOPS to LAST_OF_LOOPS. These sizes run loops that
     * smaller sizes never enter, so the JIT compiler is busy again. Larger sizes add no loops.
     */
    private static final int WARMUP_OF_LOOPS = 2000;
    private static final long FIRST_OF_LOOPS = 64 << 10;
    private static final long LAST_OF_LOOPS = 4 << 20;
    private static final int WARMUP_SHARE = 5;
    /**
     * Number of operations of the automatic warm-up before the table's first line, enough to start the JIT compiler.
     */
    private static final int STARTERS = 300;
    /**
     * Number of operations of the automatic warm-up before the table's first line, used if small operations are
     * measured. The JIT compiler compiles the code of small operations only after this number of operations. Compiled
     * operations take a tenth of the time of interpreted operations.
     */
    private static final int STARTERS_OF_SMALL = 30_000;

    /** Returns the number of timed operations of a size. {@code asked} is the user's number, or 0 for the default. */
    static int iterations(int asked, long bytes) {
        return asked > 0 ? asked : Math.clamp(BYTES_PER_LINE / Math.max(1, bytes), FEWEST_ITERATIONS, MAX_ITERATIONS);
    }

    /**
     * Returns the default number of warm-up operations of a line that has the first type and the first reduction. This
     * default applies if the user has set neither the number of warm-up operations nor the number of timed operations.
     */
    private static int warmup(boolean first, int timed, long bytes) {
        if (first && timed == MAX_ITERATIONS) {
            return WARMUP_OF_THE_FIRST;
        }
        return bytes >= FIRST_OF_LOOPS && bytes <= LAST_OF_LOOPS ? WARMUP_OF_LOOPS : Math.max(1, timed / WARMUP_SHARE);
    }

    /**
     * Returns the lines of the table: all types, for each type all reductions, and for each reduction all sizes. Sizes
     * are rounded down to a multiple of the type's size and of the number of parts. If two sizes become equal, they
     * have one line.
     *
     * @param parts  number of equal parts of the larger operand
     * @param warmup number of operations before the timed operations; negative for the default
     */
    static List<Case> cases(List<DataType> types, List<Reduction> reductions, Sizes sizes, int parts, int iterations,
            int warmup) {
        List<Case> cases = new ArrayList<>();
        for (DataType type : types) {
            List<Long> counts =
                    sizes.list().stream().map(size -> size / type.bytes() / parts * parts).distinct().toList();
            for (Reduction reduction : reductions) {
                for (long count : counts) {
                    int timed = iterations(iterations, count * type.bytes());
                    boolean usual = iterations > 0 || cases.size() >= counts.size();
                    int before = warmup >= 0 ? warmup
                            : bounded(
                                    usual ? Math.max(1, timed / WARMUP_SHARE)
                                            : warmup(cases.isEmpty(), timed, count * type.bytes()),
                                    count * type.bytes());
                    cases.add(new Case(cases.size(), type, reduction, count, before, timed));
                }
            }
        }
        return cases;
    }

    /** Returns the given number of warm-up operations, reduced so that they move at most BYTES_PER_LINE; at least 1. */
    static int bounded(int operations, long bytes) {
        return Math.clamp(BYTES_PER_LINE / Math.max(1, bytes), 1, operations);
    }

    /**
     * Returns the number of operations before the table's first line; 0 if the plan does not warm up automatically.
     * These operations have the smallest size. The number is small if the table's first line has few warm-up
     * operations, or if each operation is checked. Otherwise the number is large, and more operations follow until the
     * JIT compiler is idle.
     */
    int starters() {
        return !warmsUp ? 0
                : bounded(checking != Checking.EVERY && cases.getFirst().warmup() >= WARMUP_OF_THE_FIRST
                        ? STARTERS_OF_SMALL
                        : STARTERS, smallestBytes());
    }

    CollectiveCall call() {
        return new CollectiveCall(collective, ranks);
    }

    /** Returns the quotient of the larger operand's count and the count that the call receives. */
    int parts() {
        return collective.parts(ranks);
    }

    boolean check() {
        return checking != Checking.NONE;
    }

    long largestBytes() {
        return cases.stream().mapToLong(Case::bytes).max().orElse(0);
    }

    long smallestBytes() {
        return cases.stream().mapToLong(Case::bytes).min().orElse(0);
    }
}
