package org.millrace.proxy;

import org.millrace.abi.ConnectionLayout;

/**
 * Whose the frames under way are on a network's connection that several connections share: completions come in the
 * order of the frames.
 */
final class FrameOwners {

    private final int[] owners;
    private final long[] completed;
    private long added;
    private long removed;

    FrameOwners(int members) {
        // a member has no more frames under way than steps, and a power of two wraps without a gap
        this.owners = new int[Integer.highestOneBit(Math.max(1, members * ConnectionLayout.SLOTS - 1)) << 1];
        this.completed = new long[members];
    }

    void add(int member) {
        owners[(int) (added++ & owners.length - 1)] = member;
    }

    /** The network has completed so many frames since it was made. */
    void complete(long frames) {
        while (removed != frames) {
            completed[owners[(int) (removed++ & owners.length - 1)]]++;
        }
    }

    long completed(int member) {
        return completed[member];
    }
}
