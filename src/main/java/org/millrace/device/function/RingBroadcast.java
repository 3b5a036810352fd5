package org.millrace.device.function;

import org.millrace.abi.CollectiveWork;
import org.millrace.device.channel.DeviceChannel;
import org.millrace.device.primitives.ChunkShape;
import org.millrace.device.work.DeviceCommunicator;

/** A broadcast along the ring, from the root to the rank before it. */
final class RingBroadcast extends RingFunction {

    RingBroadcast() {
        super(ChunkShape.ONE_STEP);
    }

    @Override
    public InPlace inPlace() {
        return InPlace.OUTPUT;
    }

    @Override
    ChunkSchedule schedule(ChannelPart part, CollectiveWork work, DeviceCommunicator communicator,
            DeviceChannel channel) {
        boolean begins = communicator.rank() == work.root();
        return Chain.spread(part, begins, !begins || work.sendBuffer() != work.receiveBuffer(),
                channel.view().next() != work.root());
    }
}
