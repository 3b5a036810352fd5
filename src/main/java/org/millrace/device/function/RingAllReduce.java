package org.millrace.device.function;

import org.millrace.device.primitives.Primitives;

/**
 * One channel's share of a ring all-reduce, in rounds of one chunk per rank. In a round of n ranks every chunk travels
 * 2(n - 1) hops: n - 1 on which each rank adds its own elements, after which one rank holds the sum, and n - 1 on which
 * the sum is passed on:
 *
 * <pre>
 *   primitive         0     1 .. n-2               n-1                         n .. 2n-3             2n-2
 *                     send  receive, reduce, send  receive, reduce, keep, send receive, keep, send   receive, keep
 *   chunk (of rank r) r-1   r-2 .. r-n+1           r                           r-1 .. r-n+2          r+1
 * </pre>
 */
public final class RingAllReduce extends ChunkSchedule {

    private final int rank;
    private final int ranks;

    /**
     * An all-reduce at its beginning.
     *
     * @param share which of the elements this channel reduces
     * @param rank  this rank's place in the ring
     * @param ranks ranks in the ring, 2 or more
     */
    public RingAllReduce(ChannelPart share, int rank, int ranks) {
        super(share, ranks, 2 * ranks - 1);
        this.rank = rank;
        this.ranks = ranks;
    }

    @Override
    int sendsPerRound() {
        return 2 * (ranks - 1);
    }

    @Override
    int receivesPerRound() {
        return 2 * (ranks - 1);
    }

    @Override
    void choose(int primitive) {
        set(kind(primitive), Math.floorMod(rank - 1 - primitive, ranks), 0, 0);
    }

    private int kind(int primitive) {
        if (primitive == 0) {
            return Primitives.INPUT | Primitives.SEND;
        } else if (primitive < ranks - 1) {
            return Primitives.RECEIVE | Primitives.INPUT | Primitives.SEND;
        } else if (primitive == ranks - 1) {
            return Primitives.RECEIVE | Primitives.INPUT | Primitives.LAST | Primitives.OUTPUT | Primitives.SEND;
        } else if (primitive < 2 * ranks - 2) {
            return Primitives.RECEIVE | Primitives.OUTPUT | Primitives.SEND;
        } else {
            return Primitives.RECEIVE | Primitives.OUTPUT;
        }
    }
}
