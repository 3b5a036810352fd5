package com.example.millrace.experts;

import java.lang.foreign.MemorySegment;
import org.millrace.device.gin.GinTeam;
import org.millrace.device.gin.HostGin;
import org.millrace.device.gin.RemoteAction;
import org.millrace.gin.Window;

/**
 * A channel's block that sends. For each rank, it fills slots of a buffer and puts them into the same slots of the
 * rank's buffer. Then it adds their number to the tail signal at that rank. A slot is free again when the rank's head
 * has passed it, because the put from the slot is then complete, too.
 */
final class ChannelSender implements Block {

    private final HostGin gin;
    private final GinTeam team;
    private final ExpertLayout layout;
    private final ExpertPlan plan;
    private final Window window;
    private final MemorySegment memory;
    private final TokenSource source;
    private final int channel;
    private final long[] total;
    private final long[] written;
    private final long[] sent;
    /** Number of tokens for each rank that were put but not announced, because the queue was full. */
    private final long[] unannounced;
    private int unfinished;

    ChannelSender(HostGin gin, GinTeam team, ExpertPlan plan, ExpertLayout layout, Window window, MemorySegment memory,
            int channel, long[] total, TokenSource source) {
        this.gin = gin;
        this.team = team;
        this.plan = plan;
        this.layout = layout;
        this.window = window;
        this.memory = memory;
        this.channel = channel;
        this.total = total;
        unfinished = total.length;
        this.source = source;
        written = new long[total.length];
        sent = new long[total.length];
        unannounced = new long[total.length];
    }

    @Override
    public int progress() {
        int work = 0;
        unfinished = 0;
        for (int i = 0; i < total.length; i++) {
            // begins with this rank, so that not all ranks send to the same rank first
            int rank = (team.rank() + i) % total.length;
            work += send(rank);
            unfinished += isFinished(rank) ? 0 : 1;
        }
        return work;
    }

    /** Returns whether all tokens were sent and used. No head signal is in flight then. */
    private boolean isFinished(int rank) {
        return sent[rank] == total[rank] && unannounced[rank] == 0 && head(rank) == total[rank];
    }

    private long head(int rank) {
        return gin.readSignal(layout.headSignal(channel, rank));
    }

    private int send(int rank) {
        int work = 0;
        if (unannounced[rank] == 0 && sent[rank] < total[rank]) {
            work = fill(rank, head(rank) + plan.slots());
            put(rank);
        }
        if (unannounced[rank] > 0 && gin.trySignal(team, rank,
                RemoteAction.add(layout.tailSignal(channel, team.rank()), unannounced[rank]))) {
            unannounced[rank] = 0;
            work++;
        }
        return work;
    }

    private int fill(int rank, long limit) {
        int work = 0;
        while (written[rank] < total[rank] && written[rank] < limit
                && source.write(rank, memory, layout.sendSlot(channel, rank, written[rank]))) {
            written[rank]++;
            work++;
        }
        return work;
    }

    /** Puts the filled slots up to the buffer's end. The next pass puts slots at the buffer's beginning. */
    private void put(int rank) {
        long first = sent[rank];
        long count = Math.min(written[rank] - first, plan.slots() - first % plan.slots());
        if (count > 0 && gin.tryPut(team, rank, window, layout.receiveSlot(channel, team.rank(), first), window,
                layout.sendSlot(channel, rank, first), count * plan.tokenBytes(), RemoteAction.NONE, -1)) {
            sent[rank] += count;
            unannounced[rank] = count;
        }
    }

    @Override
    public boolean done() {
        return unfinished == 0;
    }

    @Override
    public String waitingFor() {
        for (int rank = 0; rank < total.length; rank++) {
            if (!isFinished(rank)) {
                return gin + ", channel " + channel + " to rank " + team.toWorld(gin.communicator().rank(), rank)
                        + ": sent " + sent[rank] + " of " + total[rank] + " tokens, head " + head(rank);
            }
        }
        return gin + ", channel " + channel + ": all was sent";
    }

    /** Source of a channel's tokens for each rank. */
    interface TokenSource {

        /** Writes the next token for a rank to a slot, in order. Returns false if none is available yet. */
        boolean write(int rank, MemorySegment memory, long offset);
    }
}
