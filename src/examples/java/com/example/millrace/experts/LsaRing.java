package com.example.millrace.experts;

import java.lang.foreign.MemorySegment;
import org.millrace.device.gin.LsaMemory;

/**
 * A channel's rings between this rank and its near ranks: one ring in each direction for each near rank. A sender
 * stores tokens in the receiver's window and advances the tail there. The receiver advances the head in the sender's
 * window. The rings are never reset.
 */
final class LsaRing {

    private final LsaMemory near;
    private final HybridLayout layout;
    private final int channel;
    private final long[] sent;
    private final long[] taken;

    LsaRing(LsaMemory near, HybridLayout layout, int channel) {
        this.near = near;
        this.layout = layout;
        this.channel = channel;
        sent = new long[near.ranks()];
        taken = new long[near.ranks()];
    }

    int ranks() {
        return near.ranks();
    }

    /** Returns whether the ring to a rank has a free slot. Acquire: pairs with the release in {@link #release}. */
    boolean hasRoom(int to) {
        return sent[to] - near.acquire(near.self(), layout.head(channel, to)) < layout.railPlan().slots();
    }

    MemorySegment memory(int to) {
        return near.of(to);
    }

    /** Returns the offset in a rank's window at which the next token for that rank is stored. */
    long slot(int to) {
        return layout.ringSlot(channel, near.self(), sent[to]);
    }

    /** Publishes a filled slot. Release: pairs with the acquire in {@link #hasNext}. */
    void publish(int to) {
        near.release(to, layout.tail(channel, near.self()), ++sent[to]);
    }

    /** Returns whether a token of a rank has arrived. Acquire: pairs with the release in {@link #publish}. */
    boolean hasNext(int from) {
        return near.acquire(near.self(), layout.tail(channel, from)) - taken[from] > 0;
    }

    /** Returns the offset in this rank's window of the next token from a rank. */
    long next(int from) {
        return layout.ringSlot(channel, from, taken[from]);
    }

    /** Frees the slot of a token that was taken. Release: pairs with the acquire in {@link #hasRoom}. */
    void release(int from) {
        near.release(from, layout.head(channel, near.self()), ++taken[from]);
    }

    @Override
    public String toString() {
        return "near rank " + near.self() + ", channel " + channel;
    }
}
