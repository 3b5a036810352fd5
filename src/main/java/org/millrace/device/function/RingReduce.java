package org.millrace.device.function;

import org.millrace.abi.CollectiveWork;
import org.millrace.device.channel.DeviceChannel;
import org.millrace.device.primitives.ChunkShape;
import org.millrace.device.work.DeviceCommunicator;

/** A reduction along the ring, from the rank behind the root to the root. */
final class RingReduce extends RingFunction {

    RingReduce() {
        super(ChunkShape.ONE_STEP);
    }

    @Override
    ChunkSchedule schedule(ChannelPart part, CollectiveWork work, DeviceCommunicator communicator,
            DeviceChannel channel) {
        boolean last = communicator.rank() == work.root();
        return Chain.combine(part, channel.view().previous() != work.root(), last, !last);
    }
}
