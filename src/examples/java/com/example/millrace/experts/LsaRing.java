package com.example.millrace.experts;

import java.lang.foreign.MemorySegment;
import org.millrace.device.gin.LsaMemory;

/**
 * A channel's rings between this rank and those near it, one each way with each. A sender stores tokens in the
 * receiver's window and moves the tail there; the receiver moves the head in the sender's. They are never reset.
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

    /** Whether there is a slot for a rank. An acquire: pairs with its release in {@link #release}. */
    boolean hasRoom(int to) {
        return sent[to] - near.acquire(near.self(), layout.head(channel, to)) < layout.railPlan().slots();
    }

    MemorySegment memory(int to) {
        return near.of(to);
    }

    /** Where in its window the next token for a rank goes. */
    long slot(int to) {
        return layout.ringSlot(channel, near.self(), sent[to]);
    }

    /** The slot was filled. A release: pairs with the acquire in {@link #hasNext}. */
    void publish(int to) {
        near.release(to, layout.tail(channel, near.self()), ++sent[to]);
    }

    /** Whether a token of a rank is here. */
    boolean hasNext(int from) {
        return near.acquire(near.self(), layout.tail(channel, from)) - taken[from] > 0;
    }

    /** Where in this rank's window it lies. */
    long next(int from) {
        return layout.ringSlot(channel, from, taken[from]);
    }

    /** The token was taken. */
    void release(int from) {
        near.release(from, layout.head(channel, near.self()), ++taken[from]);
    }

    @Override
    public String toString() {
        return "near rank " + near.self() + ", channel " + channel;
    }
}
