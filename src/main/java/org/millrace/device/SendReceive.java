package org.millrace.device;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.millrace.abi.KernelChannel;
import org.millrace.abi.Protocol;
import org.millrace.abi.kernel.PointToPointWork;
import org.millrace.device.Block.BlockPair;

/**
 * A send and a receive that run at the same time. One of the two may be absent. If a rank sends to itself, the elements
 * are copied, and no transfer is announced to a proxy.
 */
final class SendReceive implements FunctionTable.DeviceFunction {

    @Override
    public List<ChannelTask> tasks(int number, MemorySegment item, DeviceCommunicator communicator,
            DeviceChannel channel) {
        PointToPointWork work = PointToPointWork.of(item);
        List<ChannelTask> tasks = new ArrayList<>(2);
        if (work.sendRank() != communicator.rank()) {
            int part = work.part(channel.number());
            if (part < work.sendChannels()) {
                tasks.add(send(work, part, communicator));
            }
            if (part < work.receiveChannels()) {
                tasks.add(receive(work, part, communicator));
            }
        }
        return tasks;
    }

    private static ChannelTask send(PointToPointWork work, int part, DeviceCommunicator communicator) {
        ChunkShape shape = shape(work, PointToPointWork.SEND_REGISTERED, PointToPointWork.SEND_LL, communicator);
        ChannelPart elements =
                part(work.sendBytes(), part, work.sendChannels(), work.sendChunkBytes(), shape, communicator);
        return ChannelTask.between(PointToPointWork.NO_RANK, ChunkSchedule.spread(elements, true, false, true), shape,
                KernelChannel.POINT_TO_POINT, work.sendRank());
    }

    private static ChannelTask receive(PointToPointWork work, int part, DeviceCommunicator communicator) {
        ChunkShape shape = shape(work, PointToPointWork.RECEIVE_REGISTERED, PointToPointWork.RECEIVE_LL, communicator);
        ChannelPart elements =
                part(work.receiveBytes(), part, work.receiveChannels(), work.receiveChunkBytes(), shape, communicator);
        return ChannelTask.between(work.receiveRank(), ChunkSchedule.spread(elements, false, true, false), shape,
                KernelChannel.POINT_TO_POINT, PointToPointWork.NO_RANK);
    }

    private static ChunkShape shape(PointToPointWork work, int registered, int ll, DeviceCommunicator communicator) {
        return (work.flags() & registered) != 0 ? ChunkShape.ONE_STEP.inUserMemory(communicator.view().transferChunk())
                : ChunkShape.ONE_STEP.in((work.flags() & ll) != 0 ? Protocol.LL : Protocol.SIMPLE);
    }

    /**
     * Returns one channel's share of a send or a receive.
     *
     * @param chunk size of a chunk in bytes; 0 for a chunk that fills a slot
     */
    private static ChannelPart part(long bytes, int part, int parts, long chunk, ChunkShape shape,
            DeviceCommunicator communicator) {
        long begin = PointToPointWork.partBegin(parts, part, bytes);
        return ChannelPart.of(begin, PointToPointWork.partBegin(parts, part + 1, bytes) - begin, 1,
                chunk > 0 ? chunk
                        : shape.protocol() == Protocol.SIMPLE ? communicator.view().transferChunk()
                                : shape.chunkBytes(communicator.layout()));
    }

    @Override
    public Block block(int number, MemorySegment item, DeviceCommunicator communicator, DeviceChannel channel,
            KernelMemory lookup) {
        PointToPointWork work = PointToPointWork.of(item);
        int part = work.part(channel.number());
        MemorySegment from =
                part < work.sendChannels() ? lookup.at(work.sendAddress(), work.sendBytes()) : MemorySegment.NULL;
        MemorySegment to = part < work.receiveChannels() ? lookup.at(work.receiveAddress(), work.receiveBytes())
                : MemorySegment.NULL;
        if (work.sendRank() == communicator.rank()) {
            return LocalCopy.block(BlockMemory.copied(from, to), work.sendBytes());
        }
        BlockMemory sent = BlockMemory.copied(from, from);
        if ((work.flags() & PointToPointWork.SEND_READ) != 0) {
            sent = sent.readByPeers(true, false);
        }
        Block send = part < work.sendChannels() ? send(work, part, communicator).block(sent, channel) : null;
        Block receive = part < work.receiveChannels()
                ? receive(work, part, communicator).block(BlockMemory.copied(to, to), channel)
                : null;
        return send == null ? receive : receive == null ? send : new BlockPair(send, receive);
    }
}
