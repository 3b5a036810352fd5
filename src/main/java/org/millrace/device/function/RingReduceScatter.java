package org.millrace.device.function;

import org.millrace.device.primitives.Primitives;

/**
 * One channel's share of every rank's result in a ring reduce-scatter. In a round each rank's chunk travels n - 1 hops
 * towards it, and each rank on the way adds its own:
 *
 * <pre>
 *   primitive          0     1 .. n-2               n-1
 *                      send  receive, reduce, send  receive, reduce, keep
 *   whose (on rank r)  r-1   r-2 .. r-n+1           r
 * </pre>
 */
public final class RingReduceScatter extends ChunkSchedule {

    private final int rank;
    private final int ranks;
    private final long perRank;

    /**
     * A reduce-scatter at its beginning.
     *
     * @param share   which of each rank's result this channel makes
     * @param rank    this rank's place in the ring
     * @param ranks   ranks in the ring, 2 or more
     * @param perRank elements of each rank's result: those meant for rank i begin at {@code i * perRank} in the input
     */
    public RingReduceScatter(ChannelPart share, int rank, int ranks, long perRank) {
        super(share, 1, ranks);
        this.rank = rank;
        this.ranks = ranks;
        this.perRank = perRank;
    }

    @Override
    int sendsPerRound() {
        return ranks - 1;
    }

    @Override
    int receivesPerRound() {
        return ranks - 1;
    }

    @Override
    void choose(int primitive) {
        int kind = Primitives.INPUT | (primitive > 0 ? Primitives.RECEIVE : 0)
                | (primitive < ranks - 1 ? Primitives.SEND : Primitives.OUTPUT | Primitives.LAST);
        set(kind, 0, Math.floorMod(rank - 1 - primitive, ranks) * perRank, 0);
    }
}
