package org.millrace.cli.gin.cuda;

import java.time.Duration;
import java.util.List;

/**
 * What the ranks do on GPUs.
 *
 * @param pattern  what is measured
 * @param ranks    how many
 * @param contexts GIN contexts to ask for
 * @param cases    the lines of the table, in order
 * @param deadline how long everything together may take
 */
public record CudaGinPlan(Pattern pattern, int ranks, int contexts, List<Case> cases, Duration deadline) {

    /** What there are kernels for. */
    public enum Pattern {
        /** Ranks 0 and 1 put with a signal, in turn. */
        PUT,
        /** Ranks 0 and 1 signal, in turn. */
        SIGNAL,
        /** Every rank puts a part to each. */
        ALLTOALL
    }

    /**
     * A line of the table.
     *
     * @param bytes      of a put; 0 for signals alone
     * @param iterations rounds that are timed
     */
    public record Case(long bytes, int iterations) {
    }

    /** Most bytes of a put, 1 at least. */
    long largest() {
        return Math.max(1, cases.stream().mapToLong(Case::bytes).max().orElse(1));
    }
}
