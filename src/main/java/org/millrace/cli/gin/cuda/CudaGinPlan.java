package org.millrace.cli.gin.cuda;

import java.time.Duration;
import java.util.List;

/**
 * What the ranks do on GPUs.
 *
 * @param pattern  what is measured
 * @param ranks    how many
 * @param contexts GIN contexts to ask for
 * @param cases    the lines of the table, in order; of a dispatch one, whose iterations are its batches
 * @param tokens   what is dispatched
 * @param deadline how long everything together may take
 */
public record CudaGinPlan(Pattern pattern, int ranks, int contexts, List<Case> cases, Tokens tokens,
        Duration deadline) {

    /** What there are kernels for. */
    public enum Pattern {
        /** Ranks 0 and 1 put with a signal, in turn. */
        PUT,
        /** Ranks 0 and 1 signal, in turn. */
        SIGNAL,
        /** Every rank puts a part to each. */
        ALLTOALL,
        /** Tokens go to the ranks of their experts, and come back. */
        DISPATCH
    }

    /**
     * A line of the table.
     *
     * @param bytes      of a put; 0 for signals alone
     * @param iterations rounds that are timed
     */
    public record Case(long bytes, int iterations) {
    }

    /**
     * What a dispatch is.
     *
     * @param batch        tokens of each rank in a batch
     * @param experts      different ranks that a token goes to
     * @param words        8-byte words of a token
     * @param ranksPerHost ranks that load and store each other's windows
     * @param direct       whether tokens go straight to each rank, and not once to each host
     * @param seed         what routing and data are made from
     */
    public record Tokens(int batch, int experts, int words, int ranksPerHost, boolean direct, long seed) {
    }

    /** Most bytes of a put, 1 at least. */
    long largest() {
        return Math.max(1, cases.stream().mapToLong(Case::bytes).max().orElse(1));
    }
}
