package org.millrace.device;

import java.util.List;
import org.millrace.abi.CollectiveWork;
import org.millrace.abi.KernelChannel;

/** A collective around the channel's ring: from the rank before this one to the rank behind it. */
abstract class RingFunction extends CollectiveFunction {

    private final ChunkShape inSlots;

    /** @param inSlots shape of the chunks of protocol Simple */
    RingFunction(ChunkShape inSlots) {
        this.inSlots = inSlots;
    }

    abstract ChunkSchedule schedule(int number, ChannelPart part, CollectiveWork work, DeviceCommunicator communicator,
            DeviceChannel channel);

    int parts(int number, CollectiveWork work, int ranks) {
        return parts(ranks);
    }

    @Override
    final ChunkShape shape(int number, CollectiveWork work, DeviceCommunicator communicator, DeviceChannel channel) {
        int parts = parts(number, work, communicator.ranks());
        long chunkBytes = (work.elements(channel.number()) + parts - 1) / parts * FunctionNumber.type(number).bytes();
        ChunkShape shape = inSlots.in(FunctionNumber.protocol(number)).of(chunkBytes, communicator.layout());
        if ((work.flags() & CollectiveWork.NETWORK_REGISTERED) != 0) {
            shape = shape.inUserMemory(shape.chunkBytes(communicator.layout()));
        }
        return shape;
    }

    @Override
    public final List<ChannelTask> tasks(int number, CollectiveWork work, DeviceCommunicator communicator,
            DeviceChannel channel) {
        ChunkShape shape = shape(number, work, communicator, channel);
        ChunkSchedule schedule =
                schedule(number, part(number, work, communicator, channel, shape), work, communicator, channel);
        return List.of(ChannelTask.between(channel.view().previous(), schedule, shape, KernelChannel.COLLECTIVE,
                channel.view().next()));
    }

    /** A broadcast along the ring, from the root to the rank before it. */
    static final class RingBroadcast extends RingFunction {

        RingBroadcast() {
            super(ChunkShape.ONE_STEP);
        }

        @Override
        public InPlace inPlace() {
            return InPlace.OUTPUT;
        }

        @Override
        ChunkSchedule schedule(int number, ChannelPart part, CollectiveWork work, DeviceCommunicator communicator,
                DeviceChannel channel) {
            boolean begins = communicator.rank() == work.root();
            return Chain.spread(part, begins, !begins || work.sendBuffer() != work.receiveBuffer(),
                    channel.view().next() != work.root());
        }
    }

    /** A reduction along the ring, from the rank behind the root to the root. */
    static final class RingReduce extends RingFunction {

        RingReduce() {
            super(ChunkShape.ONE_STEP);
        }

        @Override
        ChunkSchedule schedule(int number, ChannelPart part, CollectiveWork work, DeviceCommunicator communicator,
                DeviceChannel channel) {
            boolean last = communicator.rank() == work.root();
            return Chain.combine(part, channel.view().previous() != work.root(), last, !last);
        }
    }
}
