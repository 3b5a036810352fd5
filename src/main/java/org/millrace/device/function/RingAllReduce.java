package org.millrace.device.function;

import org.millrace.abi.CollectiveWork;
import org.millrace.device.channel.DeviceChannel;
import org.millrace.device.primitives.ChunkShape;
import org.millrace.device.primitives.Primitives;
import org.millrace.device.work.DeviceCommunicator;

/**
 * A ring all-reduce, in rounds of one chunk per rank. In a round of n ranks every chunk travels 2(n - 1) hops: n - 1 on
 * which each rank adds its own elements, after which one rank holds the sum, and n - 1 on which the sum is passed on:
 *
 * <pre>
 *   primitive         0     1 .. n-2               n-1                         n .. 2n-3             2n-2
 *                     send  receive, reduce, send  receive, reduce, keep, send receive, keep, send   receive, keep
 *   chunk (place r)   r-1   r-2 .. r-n+1           r                           r-1 .. r-n+2          r+1
 * </pre>
 */
final class RingAllReduce extends RingFunction {

    RingAllReduce() {
        super(ChunkShape.TWO_SLICES);
    }

    @Override
    public int parts(int ranks) {
        return ranks;
    }

    @Override
    public InPlace inPlace() {
        return InPlace.IF_REACHED;
    }

    @Override
    ChunkSchedule schedule(ChannelPart part, CollectiveWork work, DeviceCommunicator communicator,
            DeviceChannel channel) {
        return schedule(part, channel.view().index(), communicator.ranks());
    }

    static ChunkSchedule schedule(ChannelPart part, int place, int ranks) {
        return new Steps(part, place, ranks);
    }

    private static final class Steps extends ChunkSchedule {

        private final int place;
        private final int ranks;

        Steps(ChannelPart part, int place, int ranks) {
            super(part, ranks, 2 * ranks - 1, 2 * (ranks - 1), 2 * (ranks - 1));
            this.place = place;
            this.ranks = ranks;
        }

        @Override
        void choose(int primitive) {
            set(kind(primitive), Math.floorMod(place - 1 - primitive, ranks), 0, 0);
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
}
