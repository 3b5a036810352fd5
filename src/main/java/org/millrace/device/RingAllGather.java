package org.millrace.device;

import org.millrace.abi.CollectiveWork;

/**
 * A ring all-gather. In a round each rank sends a chunk of its own and passes on those of the others, n - 1 hops each:
 *
 * <pre>
 *   primitive          0           1 .. n-2             n-1
 *                      keep, send  receive, keep, send  receive, keep
 *   whose (on rank r)  r           r-1 .. r-n+2         r+1
 * </pre>
 */
final class RingAllGather extends RingFunction {

    RingAllGather() {
        super(ChunkShape.FOUR_SLICES);
    }

    @Override
    public InPlace inPlace() {
        return InPlace.OUTPUT;
    }

    @Override
    ChunkSchedule schedule(int number, ChannelPart part, CollectiveWork work, DeviceCommunicator communicator,
            DeviceChannel channel) {
        return schedule(part, channel, communicator.ranks(), work.count(),
                work.sendBuffer() == work.receiveBuffer() + communicator.rank() * work.count());
    }

    /**
     * @param perRank elements of each rank: those of rank i begin at {@code i * perRank} in the output
     * @param inPlace whether this rank's elements lie there already
     */
    static ChunkSchedule schedule(ChannelPart part, DeviceChannel channel, int ranks, long perRank, boolean inPlace) {
        int first = Primitives.INPUT | Primitives.SEND | (inPlace ? 0 : Primitives.OUTPUT);
        return new ChunkSchedule(part, 1, ranks, ranks - 1, ranks - 1) {
            @Override
            void choose(int primitive) {
                int kind = primitive == 0 ? first
                        : Primitives.RECEIVE | Primitives.OUTPUT | (primitive < ranks - 1 ? Primitives.SEND : 0);
                set(kind, 0, 0, channel.ringRank((ranks - primitive) % ranks) * perRank);
            }
        };
    }
}
