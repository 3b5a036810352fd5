package org.millrace.device;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.Operation;
import org.millrace.abi.CollectiveWork;
import org.millrace.device.Block.BlockPair;
import org.millrace.proxy.ProxyOp;

/** A collective by an algorithm. */
public abstract class CollectiveFunction implements FunctionTable.DeviceFunction {

    /** Where elements may stay that ranks send or pass on, so that no slot holds them (mode PTR). */
    public enum InPlace {
        /** Nowhere: they are combined in slots. */
        NEVER,
        /** In any memory that the network reaches: this rank's own elements come and go there. */
        IF_REACHED,
        /** In the output: in any memory that the network reaches, and in registered memory. */
        OUTPUT
    }

    CollectiveFunction() {}

    /** Chunks of a round. */
    public int parts(int ranks) {
        return 1;
    }

    public InPlace inPlace() {
        return InPlace.NEVER;
    }

    /** Whether an item's elements go through slots, whatever memory is registered. */
    public boolean staysInSlots(int number, CollectiveWork work, int ranks) {
        return false;
    }

    /** What a channel's part asks of a network that reduces; null where none does. */
    public ProxyOp.@Nullable CollNetOp network(int number, CollectiveWork work, DeviceCommunicator communicator,
            int channel) {
        return null;
    }

    /** How a channel's chunks travel; null where none do, or a network decides. */
    @Nullable
    ChunkShape shape(int number, CollectiveWork work, DeviceCommunicator communicator, DeviceChannel channel) {
        return null;
    }

    /** Writes down how long chunks are, of an item that says how its elements are spread: what blocks then go by. */
    public final void plan(int number, CollectiveWork work, DeviceCommunicator communicator) {
        int high = work.channelHigh();
        long first = chunkBytes(number, work, communicator, 0);
        long last = high == 0 ? first : chunkBytes(number, work, communicator, high);
        long middle = high < 2 ? last : chunkBytes(number, work, communicator, 1);
        work.chunks(FunctionNumber.protocol(number), first, middle, last, 1);
    }

    private long chunkBytes(int number, CollectiveWork work, DeviceCommunicator communicator, int channel) {
        ChunkShape shape = shape(number, work, communicator, communicator.channel(channel));
        return shape == null ? 0 : shape.chunkBytes(communicator.layout());
    }

    public abstract List<ChannelTask> tasks(int number, CollectiveWork work, DeviceCommunicator communicator,
            DeviceChannel channel);

    @Override
    public final List<ChannelTask> tasks(int number, MemorySegment item, DeviceCommunicator communicator,
            DeviceChannel channel) {
        return tasks(number, CollectiveWork.of(item), communicator, channel);
    }

    /** A block for each task, all of which go on at the same time. */
    @Override
    public Block block(int number, MemorySegment item, DeviceCommunicator communicator, DeviceChannel channel,
            KernelMemory lookup) {
        CollectiveWork work = CollectiveWork.of(item);
        BlockMemory memory = memory(number, work, communicator.ranks(), lookup);
        List<ChannelTask> tasks = tasks(number, work, communicator, channel);
        Block first = tasks.getFirst().block(memory, channel);
        return tasks.size() == 1 ? first : new BlockPair(first, tasks.getLast().block(memory, channel));
    }

    /** Elements that are not combined are moved as they are: bytes. */
    BlockMemory memory(int number, CollectiveWork work, int ranks, KernelMemory lookup) {
        Operation operation = FunctionNumber.operation(number);
        DataType type = FunctionNumber.type(number);
        long count = work.count();
        MemorySegment input = lookup.at(work.sendBuffer(), operation.sendCount(count, ranks) * type.bytes());
        MemorySegment output = lookup.at(work.receiveBuffer(), operation.receiveCount(count, ranks) * type.bytes());
        BlockMemory memory = operation.reduces()
                ? BlockMemory.reduced(input, output, type, FunctionNumber.op(number, work.reductionArgument()), ranks)
                : BlockMemory.copied(input, output);
        return (work.flags() & CollectiveWork.REGISTERED) == 0 ? memory
                : memory.readByPeers(work.isInputRead(), work.isOutputRead());
    }

    static ChannelPart part(int number, CollectiveWork work, DeviceCommunicator communicator, DeviceChannel channel,
            ChunkShape shape) {
        long said = work.chunkBytes(FunctionNumber.protocol(number), channel.number());
        return ChannelPart.of(work.firstElement(channel.number()), work.elements(channel.number()),
                FunctionNumber.type(number).bytes(), said > 0 ? said : shape.chunkBytes(communicator.layout()));
    }

    /** How ranks work together on an operation; by NCCL's names where it has one. */
    public enum Algorithm {
        /** Around the channels' rings: the most bandwidth. */
        RING,
        /** Up and down the channels' trees: the shortest way. */
        TREE,
        /** Through the network, which reduces: each rank gives it its elements. */
        COLLNET_DIRECT,
        /** Between two ranks. */
        DIRECT,
        /** Each rank alone. */
        LOCAL,
        /** Through the network, which reduces: one rank of each host gives it the host's sum. */
        COLLNET_CHAIN;

        public boolean isCollNet() {
            return this == COLLNET_DIRECT || this == COLLNET_CHAIN;
        }

        /** {@return its name as NCCL_ALGO has it, in small letters} */
        public String label() {
            return name().replace("_", "").toLowerCase(Locale.ROOT);
        }
    }
}
