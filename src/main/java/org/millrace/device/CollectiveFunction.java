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

    /** Memory in which elements that ranks send or pass on may stay, so that they use no slot (mode PTR). */
    public enum InPlace {
        /** None. Elements are combined in slots. */
        NEVER,
        /** Any memory that the network reaches. This rank's own elements are sent from there and received there. */
        IF_REACHED,
        /** The output, in any memory that the network reaches or in registered memory. */
        OUTPUT
    }

    CollectiveFunction() {}

    /** Returns the number of chunks in a round. */
    public int parts(int ranks) {
        return 1;
    }

    public InPlace inPlace() {
        return InPlace.NEVER;
    }

    /** Returns whether an item's elements pass through slots even if memory is registered. */
    public boolean staysInSlots(int number, CollectiveWork work, int ranks) {
        return false;
    }

    /** Returns the request of a channel's part to a network that reduces; null if no network reduces. */
    public ProxyOp.@Nullable CollNetOp network(int number, CollectiveWork work, DeviceCommunicator communicator,
            int channel) {
        return null;
    }

    /** Returns the form of a channel's chunks on their way; null if no chunks travel, or if a network decides. */
    @Nullable
    ChunkShape shape(int number, CollectiveWork work, DeviceCommunicator communicator, DeviceChannel channel) {
        return null;
    }

    /**
     * Writes the lengths of chunks into an item that states the distribution of its elements. Blocks follow these
     * lengths.
     */
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

    /** Returns a block for each task. All blocks run at the same time. */
    @Override
    public Block block(int number, MemorySegment item, DeviceCommunicator communicator, DeviceChannel channel,
            KernelMemory lookup) {
        CollectiveWork work = CollectiveWork.of(item);
        BlockMemory memory = memory(number, work, communicator.ranks(), lookup);
        List<ChannelTask> tasks = tasks(number, work, communicator, channel);
        Block first = tasks.getFirst().block(memory, channel);
        return tasks.size() == 1 ? first : new BlockPair(first, tasks.getLast().block(memory, channel));
    }

    /** Returns the memory of an item. Elements that are not combined are moved unchanged, as bytes. */
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

    /** Patterns of cooperation between ranks. The names are NCCL's where NCCL has one. */
    public enum Algorithm {
        /** Around the channels' rings: highest bandwidth. */
        RING,
        /** Up and down the channels' trees: shortest path. */
        TREE,
        /** Through the network, which reduces. Each rank sends its elements to the network. */
        COLLNET_DIRECT,
        /** Between two ranks. */
        DIRECT,
        /** On each rank alone. */
        LOCAL,
        /** Through the network, which reduces. One rank of each host sends the host's sum to the network. */
        COLLNET_CHAIN;

        public boolean isCollNet() {
            return this == COLLNET_DIRECT || this == COLLNET_CHAIN;
        }

        /** {@return its name as in NCCL_ALGO, in lower case} */
        public String label() {
            return name().replace("_", "").toLowerCase(Locale.ROOT);
        }
    }
}
