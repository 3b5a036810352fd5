package org.millrace.engine;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.Operation;
import org.millrace.ReduceOp;
import org.millrace.abi.Protocol;
import org.millrace.abi.kernel.CollectiveWork;
import org.millrace.device.ChannelTask;
import org.millrace.device.CollectiveFunction;
import org.millrace.device.CollectiveFunction.InPlace;
import org.millrace.device.DeviceCommunicator;
import org.millrace.device.FunctionNumber;
import org.millrace.device.FunctionTable;
import org.millrace.element.ElementKernel;
import org.millrace.engine.PlannedOperation.Collective;
import org.millrace.engine.PlannedOperation.PlannedCollective;
import org.millrace.engine.Registrations.UserRegions;
import org.millrace.operation.HeapAddress;
import org.millrace.proxy.spi.OperationSignature;

/**
 * Plans the work item of a collective. The planner selects the function and the channels, and decides whether the data
 * is copied through slots or stays in the user's memory.
 */
final class CollectivePlanner {

    private final DeviceCommunicator device;
    private final int ranks;
    private final EngineOptions options;
    private final Registrations registrations;
    /** Collectives over networks that reduce data; null if the communicator uses no such network. */
    private final @Nullable CollNet collNet;

    public CollectivePlanner(DeviceCommunicator device, EngineOptions options, Registrations registrations,
            @Nullable CollNet collNet) {
        this.device = device;
        this.ranks = device.ranks();
        this.options = options;
        this.registrations = registrations;
        this.collNet = collNet;
    }

    /**
     * Plans a collective that the program requested.
     *
     * @throws IllegalArgumentException if the operator is undefined for the type
     */
    public PlannedCollective plan(Collective asked) {
        Operation operation = asked.operation();
        DataType type = asked.type();
        ReduceOp op = asked.op();
        long count = asked.count();
        MemorySegment send = asked.send();
        MemorySegment receive = asked.receive();
        int root = asked.root();
        boolean reduces = operation.reduces();
        long bytes = asked.bytes();
        if (reduces) {
            // Throws before the plan is made if the operator is undefined for the type.
            ElementKernel.of(type, op, ranks);
        }
        CollectiveFunction.Algorithm algorithm = algorithm(operation, bytes, type, op);
        CollectiveFunction function = FunctionTable.STANDARD.collective(operation, algorithm);
        DataType moved = reduces ? type : DataType.UINT8;
        int parts = function.parts(ranks);
        Protocol protocol = algorithm.isCollNet() ? Protocol.SIMPLE : options.protocols().of(operation);
        int number = FunctionNumber.pack(operation, algorithm, protocol, moved, reduces ? op : ReduceOp.SUM);
        CollectiveWork work = CollectiveWork.of(MemorySegment.ofArray(new long[CollectiveWork.BYTES / Long.BYTES]));
        ChannelPartition.spread(work, reduces ? count : bytes, moved.bytes(), parts, channels(algorithm));
        work.set(send == null ? 0 : send.address(), receive == null ? 0 : receive.address(), root,
                FunctionNumber.argument(op), CollectiveWork.PROFILED);
        function.plan(number, work, device);
        UserRegions regions = UserRegions.NONE;
        boolean inSlots =
                function.staysInSlots(number, work, ranks) || HeapAddress.isOf(send) || HeapAddress.isOf(receive);
        if (!inSlots && function.inPlace() != InPlace.NEVER && registrations.mayHold(bytes / parts, protocol)) {
            regions = regions(function, number, work, receive, operation.receiveCount(bytes, ranks), bytes / parts);
        }
        if (regions != UserRegions.NONE) {
            work.flags(CollectiveWork.PROFILED | CollectiveWork.NETWORK_REGISTERED);
        } else if (!inSlots && algorithm != CollectiveFunction.Algorithm.LOCAL && !algorithm.isCollNet()) {
            boolean input =
                    registrations.isRead(send, operation.sendCount(bytes, ranks), bytes / parts, reduces, protocol);
            boolean output = registrations.isRead(receive, operation.receiveCount(bytes, ranks), bytes / parts, reduces,
                    protocol);
            if (input || output) {
                work.read(input, output);
            }
        }
        return new PlannedCollective(asked, number, work,
                OperationSignature.pack(operation, type, op, operation.hasRoot() ? root : 0), regions);
    }

    private CollectiveFunction.Algorithm algorithm(Operation operation, long bytes, DataType type, ReduceOp op) {
        if (ranks == 1 || bytes == 0) {
            return CollectiveFunction.Algorithm.LOCAL;
        }
        CollectiveFunction.Algorithm network = collNet == null ? null : collNet.algorithm(operation, bytes, type, op);
        if (network != null) {
            return network;
        }
        return operation == Operation.ALL_REDUCE && options.algorithms().prefersTree(ranks, bytes)
                ? CollectiveFunction.Algorithm.TREE
                : CollectiveFunction.Algorithm.RING;
    }

    private int channels(CollectiveFunction.Algorithm algorithm) {
        return switch (algorithm) {
            case LOCAL -> 1;
            case TREE -> device.channels();
            case RING, DIRECT, COLLNET_DIRECT, COLLNET_CHAIN -> options.channels();
        };
    }

    /**
     * Returns the user's memory that connections use in place. This rank sends and forwards elements directly from this
     * memory, without a copy into slots.
     *
     * @param output output buffer, used in place if it is registered
     */
    private UserRegions regions(CollectiveFunction function, int number, CollectiveWork work, MemorySegment output,
            long bytes, long hopBytes) {
        int from = Registrations.NO_RANK;
        int to = Registrations.NO_RANK;
        for (int channel = 0; channel <= work.channelHigh(); channel++) {
            ChannelTask task = function.tasks(number, work, device, device.channel(channel)).getFirst();
            int before = task.from().length == 0 ? Registrations.NO_RANK : task.from()[0];
            int behind = task.to().length == 0 ? Registrations.NO_RANK : task.to()[0];
            if (channel > 0 && (before != from || behind != to)) {
                // A region belongs to one peer. The neighbors of this rank differ between the rings, so one region for
                // each direction is not enough. The collective then uses no region.
                return UserRegions.NONE;
            }
            from = before;
            to = behind;
        }
        Protocol protocol = FunctionNumber.protocol(number);
        UserRegions registered =
                function.inPlace() == InPlace.OUTPUT ? registrations.of(output, bytes, protocol, from, to)
                        : UserRegions.NONE;
        return registered == UserRegions.NONE ? registrations.ofAny(hopBytes, protocol, from, to) : registered;
    }

    /** Distribution of an operation's elements over channels. */
    static final class ChannelPartition {

        /**
         * Minimum size of each chunk in a round of the schedule, in bytes. With smaller chunks, an additional channel
         * costs more steps than it saves.
         */
        private static final long SMALLEST_CHUNK_BYTES = 16 * 1024;
        private static final long ALIGNMENT_BYTES = 64;

        private ChannelPartition() {}

        /** Returns the number of channels that a collective of {@code bytes} bytes uses, from 1 to {@code channels}. */
        static int channels(long bytes, int parts, int channels) {
            return Math.clamp(bytes / (parts * SMALLEST_CHUNK_BYTES), 1, channels);
        }

        /**
         * Distributes a collective in contiguous shares of nearly equal size, each beginning at a multiple of 64 bytes.
         * No share is empty, unless the collective has no elements.
         *
         * @param work receives the range of channels, from channel 0 on, and the number of elements of each channel
         */
        static void spread(CollectiveWork work, long count, int elementBytes, int parts, int channels) {
            long used = channels(count * elementBytes, parts, channels);
            long alignment = ALIGNMENT_BYTES / elementBytes;
            long share = (count + used - 1) / used;
            long aligned = (share + alignment - 1) / alignment * alignment;
            int last = count == 0 ? 0 : (int) ((count - 1) / aligned);
            work.spread(0, last, Math.min(aligned, count), last > 1 ? aligned : 0,
                    last > 0 ? count - last * aligned : 0);
        }
    }
}
