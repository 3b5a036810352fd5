package org.millrace.device.gin.expert;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import org.millrace.MillraceException;
import org.millrace.device.gin.expert.ChannelReceiver.TokenSink;
import org.millrace.device.gin.expert.ChannelSender.TokenSource;

/** What came to this rank's experts in a batch: checked against the plan as it comes, kept, and sent back changed. */
final class ReceivedTokens {

    private final ExpertPlan plan;
    private final int self;
    private final long batch;
    private final long[][][] kept;
    private long count;

    ReceivedTokens(ExpertPlan plan, int self, long batch, long[][] incoming) {
        this.plan = plan;
        this.self = self;
        this.batch = batch;
        kept = new long[plan.channels()][plan.ranks()][];
        for (int channel = 0; channel < plan.channels(); channel++) {
            for (int rank = 0; rank < plan.ranks(); rank++) {
                int expected = plan.countTokens(batch, rank, channel, self);
                if (incoming[channel][rank] != expected) {
                    throw wrong(rank, channel,
                            "announces " + incoming[channel][rank] + " tokens instead of " + expected);
                }
                kept[channel][rank] = new long[expected * plan.words()];
                count += expected;
            }
        }
    }

    long count() {
        return count;
    }

    TokenSink sink(int channel) {
        int[] token = new int[plan.ranks()];
        int[] position = new int[plan.ranks()];
        Arrays.fill(token, plan.firstToken(channel));
        return (rank, memory, offset) -> {
            token[rank] = plan.nextToken(batch, rank, channel, self, token[rank]);
            for (int word = 0; word < plan.words(); word++) {
                long value = memory.get(ValueLayout.JAVA_LONG, offset + (long) word * Long.BYTES);
                long expected = plan.word(batch, rank, token[rank], word);
                if (value != expected) {
                    throw wrong(rank, channel, "sent token " + token[rank] + " with " + value + " as word " + word
                            + " instead of " + expected);
                }
                kept[channel][rank][position[rank]++] = value;
            }
            token[rank]++;
        };
    }

    TokenSource source(int channel) {
        int[] position = new int[plan.ranks()];
        return (int rank, MemorySegment memory, long offset) -> {
            for (int word = 0; word < plan.words(); word++) {
                memory.set(ValueLayout.JAVA_LONG, offset + (long) word * Long.BYTES,
                        ExpertPlan.expert(self, kept[channel][rank][position[rank]++]));
            }
        };
    }

    private MillraceException wrong(int rank, int channel, String what) {
        return new MillraceException("dispatch to rank " + self + " (seed " + plan.seed() + ", batch " + batch
                + "): rank " + rank + ", channel " + channel + ", " + what);
    }
}
