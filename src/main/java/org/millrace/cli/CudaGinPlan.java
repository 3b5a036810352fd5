package org.millrace.cli;

import java.time.Duration;
import java.util.List;

/**
 * What the ranks do on GPUs.
 *
 * @param all      whether every rank puts a part to each, or ranks 0 and 1 put or signal in turn
 * @param ranks    how many
 * @param contexts GIN contexts to ask for
 * @param cases    the lines of the table, in order
 * @param deadline how long everything together may take
 */
record CudaGinPlan(boolean all, int ranks, int contexts, List<Case> cases, Duration deadline) {

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
