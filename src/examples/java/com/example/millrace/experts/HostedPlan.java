package com.example.millrace.experts;

/**
 * An exchange with several near ranks on each host. The ranks of a host have consecutive numbers.
 *
 * @param plan    plan of all ranks; at most 64 ranks
 * @param perHost number of near ranks on a host
 */
public record HostedPlan(ExpertPlan plan, int perHost) {

    /** Number of experts of a rank. */
    static final int EXPERTS = 3;

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException if one is out of range
     */
    public HostedPlan {
        if (perHost < 1 || plan.ranks() % perHost != 0 || plan.ranks() > Long.SIZE) {
            throw new IllegalArgumentException(plan.ranks() + " ranks, " + perHost
                    + " a host: every host has as many, and there are at most " + Long.SIZE + " ranks");
        }
    }

    int hosts() {
        return plan.ranks() / perHost;
    }

    /** Returns the expert of a rank for a token that goes to the rank. */
    int expert(long batch, int rank, int token, int to) {
        return (int) Long.remainderUnsigned(plan.word(batch, rank, token, plan.words() + to), EXPERTS);
    }

    /** Returns the ranks of a host among a token's destinations, one bit for each. */
    long near(long destinations, int host) {
        long all = perHost == Long.SIZE ? -1 : (1L << perHost) - 1;
        return destinations >>> host * perHost & all;
    }
}
