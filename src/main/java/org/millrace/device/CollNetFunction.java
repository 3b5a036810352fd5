package org.millrace.device;

import java.util.List;
import org.millrace.Operation;
import org.millrace.ReduceOp;
import org.millrace.abi.KernelChannel;
import org.millrace.abi.Protocol;
import org.millrace.abi.kernel.CollectiveWork;
import org.millrace.proxy.spi.ProxyOp;

/**
 * A collective that a collective network carries out. This rank sends its elements to the network and receives the
 * result from it, one slot at a time. Sending does not wait for receiving, and continues as long as slots are free.
 * Each slot transfers one range of bytes.
 *
 * <pre>
 *                   each slot sent                       each slot received
 *   all-reduce      a range of the input                 the same range of the output
 *   all-gather      the bytes of this rank in a range,   a range of the output
 *                   or nothing
 *   reduce-scatter  a range of the input                 the bytes of this rank in a range, or nothing
 * </pre>
 *
 * <p>
 * The function works with bytes instead of elements, because this rank does not combine elements.
 */
final class CollNetFunction extends CollectiveFunction {

    @Override
    public List<ChannelTask> tasks(int number, CollectiveWork work, DeviceCommunicator communicator,
            DeviceChannel channel) {
        ChannelPart part = windows(number, work, communicator, channel.number());
        long rankBytes = bytesPerRank(number, work);
        long begin = communicator.rank() * rankBytes;
        int network = channel.view().network();
        Operation operation = FunctionNumber.operation(number);
        ChunkSchedule sent = operation == Operation.ALL_GATHER ? own(part, true, begin, begin + rankBytes)
                : ChunkSchedule.spread(part, true, false, true);
        ChunkSchedule received = operation == Operation.REDUCE_SCATTER ? own(part, false, begin, begin + rankBytes)
                : ChunkSchedule.spread(part, false, true, false);
        return List.of(ChannelTask.between(network, sent, ChunkShape.ONE_STEP, KernelChannel.COLLECTIVE, network),
                ChannelTask.between(network, received, ChunkShape.ONE_STEP, KernelChannel.COLLECTIVE, network));
    }

    @Override
    public ProxyOp.CollNetOp network(int number, CollectiveWork work, DeviceCommunicator communicator, int channel) {
        ChannelPart part = windows(number, work, communicator, channel);
        return new ProxyOp.CollNetOp(FunctionNumber.operation(number), FunctionNumber.type(number),
                (ReduceOp.BuiltIn) FunctionNumber.op(number, 0), part.first(), part.elements(), part.fullChunk(),
                bytesPerRank(number, work));
    }

    /**
     * Returns a channel's share of the operation, in bytes. For an all-gather or a reduce-scatter, the share covers the
     * data of all ranks. A chunk fills a slot.
     */
    private static ChannelPart windows(int number, CollectiveWork work, DeviceCommunicator communicator, int channel) {
        long elementBytes = FunctionNumber.type(number).bytes();
        long scale = elementBytes * (bytesPerRank(number, work) == 0 ? 1 : communicator.ranks());
        long slotBytes = communicator.layout().slotBytes(Protocol.SIMPLE) / elementBytes * elementBytes;
        return ChannelPart.of(work.firstElement(channel) * scale, work.elements(channel) * scale, 1, slotBytes);
    }

    /**
     * Returns the size of each rank's part in bytes; 0 for an all-reduce, because its elements are not divided among
     * the ranks.
     */
    private static long bytesPerRank(int number, CollectiveWork work) {
        return FunctionNumber.operation(number) == Operation.ALL_REDUCE ? 0
                : work.count() * FunctionNumber.type(number).bytes();
    }

    @Override
    BlockMemory memory(int number, CollectiveWork work, int ranks, KernelMemory lookup) {
        Operation operation = FunctionNumber.operation(number);
        long bytes = work.count() * FunctionNumber.type(number).bytes();
        return BlockMemory.copied(lookup.at(work.sendBuffer(), operation.sendCount(bytes, ranks)),
                lookup.at(work.receiveBuffer(), operation.receiveCount(bytes, ranks)));
    }

    /**
     * Returns a schedule that transfers only the bytes of each chunk that belong to this rank's own part. The rank's
     * input or output begins with the first byte of this part.
     *
     * @param sends whether the schedule sends; otherwise it receives
     * @param begin first byte of this rank's part
     * @param end   byte after this rank's part
     */
    private static ChunkSchedule own(ChannelPart part, boolean sends, long begin, long end) {
        int kind = sends ? Primitives.INPUT | Primitives.SEND : Primitives.RECEIVE | Primitives.OUTPUT;
        return new ChunkSchedule(part, 1, 1, sends ? 1 : 0, sends ? 0 : 1) {
            @Override
            void choose(int primitive) {
                setWithin(kind, begin, end);
            }
        };
    }

    /**
     * An all-reduce through a collective network that connects the leaders of the hosts
     * ({@code NCCL_ALGO_COLLNET_CHAIN}). Each host has one rank as its leader. The ranks of a host add up their
     * elements along a chain that ends at the leader. The network adds the sums of all hosts. The result then returns
     * along the chain. Each rank forwards each chunk as soon as it has arrived.
     *
     * <pre>
     *   rank 3 ▶ rank 2 ▶ rank 1 ▶ rank 0, the leader ▶ network
     *   rank 3 ◀ rank 2 ◀ rank 1 ◀ rank 0             ◀ network
     * </pre>
     */
    static final class CollNetChainAllReduce extends CollectiveFunction {

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
            boolean isLast = down == KernelChannel.NO_RANK;
            return List.of(
                    ChannelTask.between(down, ChunkSchedule.combine(part, !isLast, false, true), ChunkShape.ONE_STEP,
                            KernelChannel.COLLECTIVE, up),
                    ChannelTask.between(up, ChunkSchedule.spread(part, false, true, !isLast), ChunkShape.ONE_STEP,
                            KernelChannel.COLLECTIVE, down));
        }

        @Override
        public ProxyOp.CollNetOp network(int number, CollectiveWork work, DeviceCommunicator communicator,
                int channel) {
            ChannelPart part = part(number, work, communicator, communicator.channel(channel), ChunkShape.ONE_STEP);
            long elementBytes = FunctionNumber.type(number).bytes();
            return new ProxyOp.CollNetOp(Operation.ALL_REDUCE, FunctionNumber.type(number),
                    (ReduceOp.BuiltIn) FunctionNumber.op(number, 0), part.first() * elementBytes,
                    part.elements() * elementBytes, part.fullChunk() * elementBytes, 0);
        }
    }
}
