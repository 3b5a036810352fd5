package com.example.millrace.experts;

/**
 * An exchange among ranks of which several are near each other: those of one host, numbered in a row.
 *
 * @param plan    of all ranks; at most 64
 * @param perHost how many ranks are near each other
 */
public record HostedPlan(ExpertPlan plan, int perHost) {

    /** How many experts a rank has. */
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

    /** Which of a rank's experts a token is for that goes to the rank. */
    int expert(long batch, int rank, int token, int to) {
        return (int) Long.remainderUnsigned(plan.word(batch, rank, token, plan.words() + to), EXPERTS);
    }

    /** The ranks of a host among a token's destinations, a bit for each. */
    long near(long destinations, int host) {
        long all = perHost == Long.SIZE ? -1 : (1L << perHost) - 1;
        return destinations >>> host * perHost & all;
    }
}
