package org.millrace.device.gin.expert;

import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import org.millrace.MillraceException;
import org.millrace.device.gin.expert.ChannelReceiver.TokenSink;

/** What came back for this rank's own tokens of a batch: the sum over their experts. */
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

    TokenSink sink(int channel) {
        int[] token = new int[plan.ranks()];
        Arrays.fill(token, plan.firstToken(channel));
        return (rank, memory, offset) -> {
            token[rank] = plan.nextToken(batch, self, channel, rank, token[rank]);
            int first = token[rank]++ * plan.words();
            for (int word = 0; word < plan.words(); word++) {
                sums[first + word] += memory.get(ValueLayout.JAVA_LONG, offset + (long) word * Long.BYTES);
            }
        };
    }

    /** Compares every word with a plain reference. */
    void verify() {
        for (int token = 0; token < plan.tokens(); token++) {
            for (int word = 0; word < plan.words(); word++) {
                long expected = 0;
                for (int rank = 0; rank < plan.ranks(); rank++) {
                    expected += plan.goesTo(batch, self, token, rank)
                            ? ExpertPlan.expert(rank, plan.word(batch, self, token, word))
                            : 0;
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
