package org.millrace.device.function;

import org.millrace.device.primitives.Primitives;

/**
 * One channel's share of every rank's elements in a ring all-gather. In a round each rank sends a chunk of its own and
 * passes on those of the others, n - 1 hops each:
 *
 * <pre>
 *   primitive          0           1 .. n-2             n-1
 *                      keep, send  receive, keep, send  receive, keep
 *   whose (on rank r)  r           r-1 .. r-n+2         r+1
 * </pre>
 */
public final class RingAllGather extends ChunkSchedule {

    private final int rank;
    private final int ranks;
    private final long perRank;
    private final int first;

    /**
     * An all-gather at its beginning.
     *
     * @param share   which of each rank's elements this channel carries
     * @param rank    this rank's place in the ring
     * @param ranks   ranks in the ring, 2 or more
     * @param perRank elements of each rank: those of rank i begin at {@code i * perRank} in the output
     * @param inPlace whether this rank's elements lie there already
     */
    public RingAllGather(ChannelPart share, int rank, int ranks, long perRank, boolean inPlace) {
        super(share, 1, ranks);
        this.rank = rank;
        this.ranks = ranks;
        this.perRank = perRank;
        this.first = Primitives.INPUT | Primitives.SEND | (inPlace ? 0 : Primitives.OUTPUT);
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
        int kind = primitive == 0 ? first
                : Primitives.RECEIVE | Primitives.OUTPUT | (primitive < ranks - 1 ? Primitives.SEND : 0);
        set(kind, 0, 0, Math.floorMod(rank - primitive, ranks) * perRank);
    }
}
