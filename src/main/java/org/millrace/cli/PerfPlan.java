package org.millrace.cli;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.millrace.DataType;
import org.millrace.Operation;

/**
 * What is measured: the same for every rank, and derived from the command line alone, so that ranks never have to agree
 * on it.
 */
record PerfPlan(Operation collective, int ranks, List<Case> cases, Checking checking, long seed, Duration deadline,
        boolean profile, boolean register, boolean warmsUp) {

    /** Which operations' results are compared with a reference. */
    enum Checking {
        /** None: only times are wanted. */
        NONE,
        /** One more operation after those that are timed, on operands of its own. */
        AFTERWARDS,
        /**
         * Every operation, each on operands of its own: where a fault is planted nobody knows which one it hits. Times
         * then include filling and comparing.
         */
        EVERY
    }

    /**
     * One line of the table.
     *
     * @param count  elements of the larger operand of one rank: the call is given fewer where the other one is only a
     *               part of it
     * @param warmup operations before those that are timed; at most so many if the plan warms up by itself
     */
    record Case(int index, DataType type, Reduction reduction, long count, int warmup, int iterations) {

        long bytes() {
            return count * type.bytes();
        }

        @Override
        public String toString() {
            return bytes() + " B " + type.label() + " " + reduction;
        }
    }

    /**
     * The sizes of nccl-tests: from the smallest to the largest, by a factor or a step.
     *
     * @param max    bytes that no size exceeds
     * @param factor what a size is multiplied by to get the next; 1 if {@code step} is used
     * @param step   bytes that are added to a size to get the next; 0 if {@code factor} is used
     */
    record Sizes(long min, long max, int factor, long step) {

        List<Long> list() {
            List<Long> sizes = new ArrayList<>();
            // a size that no longer grows (0 times a factor) ends the list as well as one that is too large
            for (long size = min; size <= max && (sizes.isEmpty() || size > sizes.getLast()); size =
                    size * factor + step) {
                sizes.add(size);
            }
            return sizes;
        }
    }

    /**
     * How often an operation is repeated where the user does not say: 20,000 times, so that what the JIT compiler takes
     * of the cores for a few milliseconds, where an operation takes as many microseconds, is no figure of its own; and
     * so much less often for large operands that no line moves more than this many bytes for each rank, but 4 times at
     * least.
     */
    private static final long BYTES_PER_LINE = 256L << 20;
    private static final int MOST_ITERATIONS = 20_000;
    private static final int FEWEST_ITERATIONS = 4;
    /**
     * The JIT compiler is at work during the first line: without these, small operations would be measured in its
     * interpreter.
     */
    private static final int WARMUP_OF_THE_FIRST = 10_000;
    /**
     * Operations of these sizes run loops that smaller ones never enter: the compiler is at work again. Larger ones run
     * no others.
     */
    private static final int WARMUP_OF_LOOPS = 2000;
    private static final long FIRST_OF_LOOPS = 64 << 10;
    private static final long LAST_OF_LOOPS = 4 << 20;
    private static final int WARMUP_SHARE = 5;
    /** Operations of the automatic warm-up before the first line: about as many as make the JIT compiler start. */
    private static final int STARTERS = 300;
    /**
     * At the least, where small operations are measured: as many as the JIT compiler needs to see. When it is done with
     * them an operation takes a tenth of the time.
     */
    private static final int STARTERS_OF_SMALL = 30_000;

    /** How often an operation of a size is timed; {@code asked} is 0 to choose. */
    static int iterations(int asked, long bytes) {
        return asked > 0 ? asked : Math.clamp(BYTES_PER_LINE / Math.max(1, bytes), FEWEST_ITERATIONS, MOST_ITERATIONS);
    }

    /**
     * How often an operation runs before it is timed, where the user says neither this nor how often it is timed; of
     * the first type and reduction.
     */
    private static int warmup(boolean first, int timed, long bytes) {
        if (first && timed == MOST_ITERATIONS) {
            return WARMUP_OF_THE_FIRST;
        }
        return bytes >= FIRST_OF_LOOPS && bytes <= LAST_OF_LOOPS ? WARMUP_OF_LOOPS : Math.max(1, timed / WARMUP_SHARE);
    }

    /**
     * The lines of the table: types, in each all reductions, in each all sizes. Sizes that are no multiple of the type,
     * or of the parts of an operand, are rounded down; a size that appears twice after that is measured once.
     *
     * @param parts  into how many equal parts the larger operand is divided
     * @param warmup operations before those that are timed; negative to choose
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

    /** Returns the number of operations of a size that a warm-up may have: at least 1. */
    static int bounded(int operations, long bytes) {
        return Math.clamp(BYTES_PER_LINE / Math.max(1, bytes), 1, operations);
    }

    /**
     * Returns the number of operations of the smallest size before the first line: 0 if the plan does not warm up by
     * itself. Behind more than a few, further ones follow until the JIT compiler rests. They are few if the first line
     * has few operations, or if each operation is checked.
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

    /** By how much the larger operand is larger than the count that the call is given. */
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
