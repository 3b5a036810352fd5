package org.millrace.device;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.Operation;
import org.millrace.abi.kernel.CollectiveWork;
import org.millrace.device.Block.BlockPair;
import org.millrace.proxy.spi.ProxyOp;

/** A function that carries out a collective by one algorithm. */
public abstract class CollectiveFunction implements FunctionTable.DeviceFunction {

    /** Memory of the user from which ranks may send or forward elements without a slot (mode PTR). */
    public enum InPlace {
        /** No memory, because the elements are combined in slots. */
        NEVER,
        /**
         * Any memory that the network can access. This rank's own elements are sent from the input, and received
         * elements arrive in the output.
         */
        IF_REACHED,
        /** The output, if the network can access it or if it is registered. */
        OUTPUT
    }

    CollectiveFunction() {}

    /** Returns the number of chunks in a round of the schedule. */
    public int parts(int ranks) {
        return 1;
    }

    public InPlace inPlace() {
        return InPlace.NEVER;
    }

    /** Returns whether the elements of a work item pass through slots, even if the user's memory is registered. */
    public boolean staysInSlots(int number, CollectiveWork work, int ranks) {
        return false;
    }

    /**
     * Returns the request that describes a channel's part of the operation to the collective network; null if the
     * algorithm uses no collective network.
     */
    public ProxyOp.@Nullable CollNetOp network(int number, CollectiveWork work, DeviceCommunicator communicator,
            int channel) {
        return null;
    }

    /**
     * Returns the shape of a channel's chunks. Null if the function moves no chunks between ranks, or if the collective
     * network determines the size of the chunks.
     */
    @Nullable
    ChunkShape shape(int number, CollectiveWork work, DeviceCommunicator communicator, DeviceChannel channel) {
        return null;
    }

    /**
     * Writes the chunk sizes into a work item, which must already contain the number of elements of each channel.
     * Blocks use these sizes.
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

    /**
     * Returns the block for a work item. If the function has two tasks, the block is a pair of blocks that run at the
     * same time.
     */
    @Override
    public Block block(int number, MemorySegment item, DeviceCommunicator communicator, DeviceChannel channel,
            KernelMemory lookup) {
        CollectiveWork work = CollectiveWork.of(item);
        BlockMemory memory = memory(number, work, communicator.ranks(), lookup);
        List<ChannelTask> tasks = tasks(number, work, communicator, channel);
        Block first = tasks.getFirst().block(memory, channel);
        return tasks.size() == 1 ? first : new BlockPair(first, tasks.getLast().block(memory, channel));
    }

    /** Returns the memory of a work item. If the operation only moves elements, the memory treats them as bytes. */
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

    /** Algorithms for the operations. If NCCL has a name for an algorithm, the constant has this name. */
    public enum Algorithm {
        /** Elements travel around the rings of the channels. This algorithm has the highest bandwidth. */
        RING,
        /** Elements travel up and down the trees of the channels. This algorithm has the shortest path. */
        TREE,
        /** Each rank sends its elements to the collective network, which reduces them. */
        COLLNET_DIRECT,
        /** Elements travel directly between two ranks. */
        DIRECT,
        /** Each rank copies its own elements. */
        LOCAL,
        /** One rank of each host sends the sum of the host to the collective network, which reduces the sums. */
        COLLNET_CHAIN;

        public boolean isCollNet() {
            return this == COLLNET_DIRECT || this == COLLNET_CHAIN;
        }

        /** {@return the algorithm's name in NCCL_ALGO, in lower case} */
        public String label() {
            return name().replace("_", "").toLowerCase(Locale.ROOT);
        }
    }
}
