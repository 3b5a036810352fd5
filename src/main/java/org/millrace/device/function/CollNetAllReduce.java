package org.millrace.device.function;

import java.util.List;
import org.millrace.abi.CollectiveWork;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.KernelChannel;
import org.millrace.abi.Protocol;
import org.millrace.device.channel.DeviceChannel;
import org.millrace.device.primitives.BlockMemory;
import org.millrace.device.primitives.ChunkShape;
import org.millrace.device.work.DeviceCommunicator;
import org.millrace.device.work.KernelMemory;

/**
 * An all-reduce that the network carries out: this rank's elements go to it, a slot at a time, and results come from
 * it. What is sent does not wait for what is received: it goes ahead as far as there are slots.
 */
final class CollNetAllReduce extends CollectiveFunction {

    @Override
    public List<ChannelTask> tasks(int number, CollectiveWork work, DeviceCommunicator communicator,
            DeviceChannel channel) {
        ConnectionLayout layout = communicator.layout();
        int elementBytes = FunctionNumber.type(number).bytes();
        long slotBytes = layout.slotBytes(Protocol.SIMPLE) / elementBytes * elementBytes;
        // bytes: what the network combines is not touched here
        ChannelPart part = ChannelPart.of(0, work.count() * elementBytes, 1, slotBytes);
        int network = channel.view().network();
        return List.of(
                ChannelTask.between(network, Chain.spread(part, true, false, true), ChunkShape.ONE_STEP,
                        KernelChannel.COLLECTIVE, network),
                ChannelTask.between(network, Chain.spread(part, false, true, false), ChunkShape.ONE_STEP,
                        KernelChannel.COLLECTIVE, network));
    }

    @Override
    BlockMemory memory(int number, CollectiveWork work, int ranks, KernelMemory lookup) {
        long bytes = work.count() * FunctionNumber.type(number).bytes();
        return BlockMemory.copied(lookup.at(work.sendBuffer(), bytes), lookup.at(work.receiveBuffer(), bytes));
    }
}
