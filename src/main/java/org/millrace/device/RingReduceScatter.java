package org.millrace.device;

import org.millrace.abi.CollectiveWork;

/**
 * A ring reduce-scatter. In a round each rank's chunk travels n - 1 hops towards it, and each rank on the way adds its
 * own:
 *
 * <pre>
 *   primitive          0     1 .. n-2               n-1
 *                      send  receive, reduce, send  receive, reduce, keep
 *   whose (on rank r)  r-1   r-2 .. r-n+1           r
 * </pre>
 */
final class RingReduceScatter extends RingFunction {

    RingReduceScatter() {
        super(ChunkShape.FOUR_SLICES);
    }

    @Override
    ChunkSchedule schedule(int number, ChannelPart part, CollectiveWork work, DeviceCommunicator communicator,
            DeviceChannel channel) {
        return schedule(part, channel, communicator.ranks(), work.count());
    }

    /** @param perRank elements of each rank's result: those for rank i begin at {@code i * perRank} in the input */
    static ChunkSchedule schedule(ChannelPart part, DeviceChannel channel, int ranks, long perRank) {
        return new ChunkSchedule(part, 1, ranks, ranks - 1, ranks - 1) {
            @Override
            void choose(int primitive) {
                int kind = Primitives.INPUT | (primitive > 0 ? Primitives.RECEIVE : 0)
                        | (primitive < ranks - 1 ? Primitives.SEND : Primitives.OUTPUT | Primitives.LAST);
                set(kind, 0, channel.ringRank((2 * ranks - 1 - primitive) % ranks) * perRank, 0);
            }
        };
    }
}
