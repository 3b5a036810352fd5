package org.millrace.device;

import java.util.List;
import org.millrace.Operation;
import org.millrace.ReduceOp;
import org.millrace.abi.CollectiveWork;
import org.millrace.abi.KernelChannel;
import org.millrace.proxy.ProxyOp;

/**
 * An all-reduce through a network that has one rank of each host: a host's ranks add up along a chain to that rank, its
 * leader; the network adds the hosts' sums; and the result goes down the chain, a chunk as soon as it is there
 * ({@code NCCL_ALGO_COLLNET_CHAIN}).
 *
 * <pre>
 *   rank 3 ▶ rank 2 ▶ rank 1 ▶ rank 0, the leader ▶ network
 *   rank 3 ◀ rank 2 ◀ rank 1 ◀ rank 0             ◀ network
 * </pre>
 */
final class CollNetChainAllReduce extends CollectiveFunction {

    @Override
    ChunkShape shape(int number, CollectiveWork work, DeviceCommunicator communicator, DeviceChannel channel) {
        return ChunkShape.ONE_STEP;
    }

    @Override
    public List<ChannelTask> tasks(int number, CollectiveWork work, DeviceCommunicator communicator,
            DeviceChannel channel) {
        ChannelPart part = part(number, work, communicator, channel, ChunkShape.ONE_STEP);
        int up = channel.view().networkChainUp();
        int down = channel.view().networkChainDown();
        boolean isLast = down == KernelChannel.NOBODY;
        return List.of(
                ChannelTask.between(down, Chain.combine(part, !isLast, false, true), ChunkShape.ONE_STEP,
                        KernelChannel.COLLECTIVE, up),
                ChannelTask.between(up, Chain.spread(part, false, true, !isLast), ChunkShape.ONE_STEP,
                        KernelChannel.COLLECTIVE, down));
    }

    @Override
    public ProxyOp.CollNetOp network(int number, CollectiveWork work, DeviceCommunicator communicator, int channel) {
        ChannelPart part = part(number, work, communicator, communicator.channel(channel), ChunkShape.ONE_STEP);
        long elementBytes = FunctionNumber.type(number).bytes();
        return new ProxyOp.CollNetOp(Operation.ALL_REDUCE, FunctionNumber.type(number),
                (ReduceOp.BuiltIn) FunctionNumber.op(number, 0), part.first() * elementBytes,
                part.elements() * elementBytes, part.fullChunk() * elementBytes, 0);
    }
}
