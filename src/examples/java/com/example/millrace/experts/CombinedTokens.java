package com.example.millrace.experts;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.MillraceException;

/** Results for a rank's own tokens of a batch. Each is the sum over the token's experts. */
final class CombinedTokens {

    private final ExpertPlan plan;
    private final int self;
    private final long batch;
    private final long[] sums;

    CombinedTokens(ExpertPlan plan, int self, long batch) {
        this.plan = plan;
        this.self = self;
        this.batch = batch;
        this.sums = new long[plan.tokens() * plan.words()];
    }

    long batch() {
        return batch;
    }

    /** Adds a result for a token. */
    void add(int token, MemorySegment memory, long offset) {
        int first = token * plan.words();
        for (int word = 0; word < plan.words(); word++) {
            sums[first + word] += memory.get(ValueLayout.JAVA_LONG, offset + (long) word * Long.BYTES);
        }
    }

    /** Compares every word with a plain reference. */
    void verify() {
        for (int token = 0; token < plan.tokens(); token++) {
            boolean[] goesTo = new boolean[plan.ranks()];
            for (int rank = 0; rank < plan.ranks(); rank++) {
                goesTo[rank] = plan.goesTo(batch, self, token, rank);
            }
            for (int word = 0; word < plan.words(); word++) {
                long content = plan.word(batch, self, token, word);
                long expected = 0;
                for (int rank = 0; rank < plan.ranks(); rank++) {
                    expected += goesTo[rank] ? ExpertPlan.expert(rank, content) : 0;
                }
                long sum = sums[token * plan.words() + word];
                if (sum != expected) {
                    throw new MillraceException("combine at rank " + self + " (seed " + plan.seed() + ", batch " + batch
                            + "): token " + token + ", word " + word + " is " + sum + " instead of " + expected);
                }
            }
        }
    }
}
