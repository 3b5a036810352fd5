package org.millrace.device.gin.expert;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** A rank's own tokens of one channel, as they go to each rank. */
final class OwnTokens implements TokenSource {

    private final ExpertPlan plan;
    private final int self;
    private final long batch;
    private final int channel;
    private final int[] next;

    OwnTokens(ExpertPlan plan, int self, long batch, int channel) {
        this.plan = plan;
        this.self = self;
        this.batch = batch;
        this.channel = channel;
        this.next = new int[plan.ranks()];
        java.util.Arrays.fill(next, plan.firstToken(channel));
    }

    @Override
    public void write(int rank, MemorySegment memory, long offset) {
        int token = plan.nextToken(batch, self, channel, rank, next[rank]);
        next[rank] = token + 1;
        for (int word = 0; word < plan.words(); word++) {
            memory.set(ValueLayout.JAVA_LONG, offset + (long) word * Long.BYTES, plan.word(batch, self, token, word));
        }
    }
}
