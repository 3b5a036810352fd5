package com.example.millrace.experts;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.BitSet;
import org.millrace.MillraceException;

/**
 * Tokens that a rank's experts received in a batch, in any order, because each token contains its origin. They are
 * compared with the plan on arrival, kept, and returned changed.
 */
final class ExpertTokens {

    private final ExpertPlan plan;
    private final int self;
    private final long batch;
    private final BitSet[] seen;
    private long count;

    ExpertTokens(ExpertPlan plan, int self, long batch) {
        this.plan = plan;
        this.self = self;
        this.batch = batch;
        seen = new BitSet[plan.ranks()];
        Arrays.setAll(seen, rank -> new BitSet(plan.tokens()));
    }

    long count() {
        return count;
    }

    /** Stores a token's content, and returns the expert's result. */
    long[] take(int rank, int token, MemorySegment memory, long offset) {
        if (token < 0 || token >= plan.tokens() || seen[rank].get(token)
                || (plan.destinations(batch, rank, token) >>> self & 1) == 0) {
            throw wrong(rank, "token " + token + " is not for this rank, or came before");
        }
        seen[rank].set(token);
        count++;
        long[] made = new long[plan.words()];
        for (int word = 0; word < made.length; word++) {
            long value = memory.get(ValueLayout.JAVA_LONG, offset + (long) word * Long.BYTES);
            long expected = plan.word(batch, rank, token, word);
            if (value != expected) {
                throw wrong(rank,
                        "sent token " + token + " with " + value + " as word " + word + " instead of " + expected);
            }
            made[word] = ExpertPlan.expert(self, value);
        }
        return made;
    }

    /** Checks that no expected token is missing. */
    void verify() {
        for (int rank = 0; rank < plan.ranks(); rank++) {
            for (int token = 0; token < plan.tokens(); token++) {
                if ((plan.destinations(batch, rank, token) >>> self & 1) != 0 && !seen[rank].get(token)) {
                    throw wrong(rank, "token " + token + " did not come");
                }
            }
        }
    }

    /** Checks that each of this rank's experts received as many tokens as the senders have announced. */
    void verifyCounts(HostedPlan hosted, long[] announced) {
        long[] came = new long[announced.length];
        for (int rank = 0; rank < plan.ranks(); rank++) {
            int from = rank;
            seen[rank].stream().forEach(token -> came[hosted.expert(batch, from, token, self)]++);
        }
        if (!Arrays.equals(came, announced)) {
            throw new MillraceException("dispatch to rank " + self + " (seed " + plan.seed() + ", batch " + batch
                    + "): its experts were announced " + Arrays.toString(announced) + " tokens, and got "
                    + Arrays.toString(came));
        }
    }

    private MillraceException wrong(int rank, String what) {
        return new MillraceException("dispatch to rank " + self + " (seed " + plan.seed() + ", batch " + batch
                + "): rank " + rank + ", " + what);
    }
}
