package com.example.millrace.experts;

import java.lang.foreign.MemorySegment;
import org.millrace.MillraceException;
import org.millrace.device.gin.GinTeam;
import org.millrace.device.gin.HostGin;
import org.millrace.device.gin.RemoteAction;

/**
 * A channel's block that receives. For each rank, it takes the tokens up to the rank's tail signal, and adds their
 * number to the head signal at that rank.
 */
final class ChannelReceiver implements Block {

    private final HostGin gin;
    private final GinTeam team;
    private final ExpertLayout layout;
    private final MemorySegment memory;
    private final TokenSink sink;
    private final int channel;
    private final long[] total;
    private final long[] taken;
    private final long[] released;
    private int unfinished;

    ChannelReceiver(HostGin gin, GinTeam team, ExpertLayout layout, MemorySegment memory, int channel, long[] total,
            TokenSink sink) {
        this.gin = gin;
        this.team = team;
        this.layout = layout;
        this.memory = memory;
        this.channel = channel;
        this.total = total;
        unfinished = total.length;
        this.sink = sink;
        taken = new long[total.length];
        released = new long[total.length];
    }

    @Override
    public int progress() {
        int work = 0;
        unfinished = 0;
        for (int rank = 0; rank < total.length; rank++) {
            work += receive(rank);
            unfinished += released[rank] == total[rank] ? 0 : 1;
        }
        return work;
    }

    private long tail(int rank) {
        return gin.readSignal(layout.tailSignal(channel, rank));
    }

    private int receive(int rank) {
        if (released[rank] == total[rank]) {
            return 0;
        }
        int work = 0;
        long tail = tail(rank); // the read of the tail is an acquire, so the tokens before it are visible
        if (tail - total[rank] > 0) {
            throw new MillraceException(
                    gin + ", channel " + channel + ": rank " + team.toWorld(gin.communicator().rank(), rank)
                            + " announced " + total[rank] + " tokens, but its tail is " + tail);
        }
        while (taken[rank] < tail && sink.take(rank, memory, layout.receiveSlot(channel, rank, taken[rank]))) {
            taken[rank]++;
            work++;
        }
        long delta = taken[rank] - released[rank];
        if (delta > 0 && gin.trySignal(team, rank, RemoteAction.add(layout.headSignal(channel, team.rank()), delta))) {
            released[rank] += delta;
        }
        return work;
    }

    @Override
    public boolean done() {
        return unfinished == 0;
    }

    @Override
    public String waitingFor() {
        for (int rank = 0; rank < total.length; rank++) {
            if (released[rank] != total[rank]) {
                return gin + ", channel " + channel + " from rank " + team.toWorld(gin.communicator().rank(), rank)
                        + ": took " + taken[rank] + " of " + total[rank] + " tokens, tail " + tail(rank);
            }
        }
        return gin + ", channel " + channel + ": all was received";
    }

    /** Destination of a channel's tokens from each rank. */
    interface TokenSink {

        /** Takes the next token of a rank from a slot, in order. Returns false if the destination has no room yet. */
        boolean take(int rank, MemorySegment memory, long offset);
    }
}
