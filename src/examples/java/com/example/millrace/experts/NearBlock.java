package com.example.millrace.experts;

import java.util.Arrays;

/** A channel's block that moves given numbers of tokens from or to each near rank. */
final class NearBlock implements Block {

    /** Action on the next token from or for a rank. */
    @FunctionalInterface
    interface Step {
        /** Moves the next token if that is possible now. Returns whether it was moved. */
        boolean move(int rank);
    }

    private final LsaRing ring;
    private final String what;
    private final long[] missing;
    private final Step step;

    private NearBlock(LsaRing ring, String what, long[] total, Step step) {
        this.ring = ring;
        this.what = what;
        this.missing = total.clone();
        this.step = step;
    }

    /** Returns a block that stores tokens in the rings of other ranks. */
    static NearBlock sender(LsaRing ring, long[] total, ChannelSender.TokenSource source) {
        return new NearBlock(ring, "sends", total, to -> {
            if (!ring.hasRoom(to) || !source.write(to, ring.memory(to), ring.slot(to))) {
                return false;
            }
            ring.publish(to);
            return true;
        });
    }

    /** Returns a block that takes tokens out of this rank's rings, which lie in the window of rank {@code self}. */
    static NearBlock receiver(LsaRing ring, long[] total, int self, ChannelReceiver.TokenSink sink) {
        return new NearBlock(ring, "receives", total, from -> {
            if (!ring.hasNext(from) || !sink.take(from, ring.memory(self), ring.next(from))) {
                return false;
            }
            ring.release(from);
            return true;
        });
    }

    @Override
    public int progress() {
        int work = 0;
        for (int rank = 0; rank < missing.length; rank++) {
            while (missing[rank] > 0 && step.move(rank)) {
                missing[rank]--;
                work++;
            }
        }
        return work;
    }

    @Override
    public boolean done() {
        return Arrays.stream(missing).allMatch(left -> left == 0);
    }

    @Override
    public String waitingFor() {
        return ring + ": it " + what + " tokens of ranks near it, and lacks " + Arrays.toString(missing);
    }
}
