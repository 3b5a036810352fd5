package org.millrace.device;

import java.lang.foreign.MemorySegment;
import java.util.List;
import org.millrace.MillraceException;
import org.millrace.Operation;
import org.millrace.device.RingFunction.RingBroadcast;
import org.millrace.device.RingFunction.RingReduce;

/**
 * The functions that kernels can run, by operation and algorithm ({@code ncclDevFuncTable}). Only this table maps a
 * number to a function. For a new algorithm, a class and a line in this table are necessary.
 */
public final class FunctionTable {

    public static final FunctionTable STANDARD = standard();

    private final DeviceFunction[] rows = new DeviceFunction[FunctionNumber.ROWS];

    public FunctionTable() {}

    private static FunctionTable standard() {
        FunctionTable table = new FunctionTable();
        table.put(Operation.ALL_REDUCE, CollectiveFunction.Algorithm.RING, new RingFunction.RingAllReduce());
        table.put(Operation.ALL_REDUCE, CollectiveFunction.Algorithm.TREE, new TreeAllReduce());
        for (Operation operation : List.of(Operation.ALL_REDUCE, Operation.ALL_GATHER, Operation.REDUCE_SCATTER)) {
            table.put(operation, CollectiveFunction.Algorithm.COLLNET_DIRECT, new CollNetFunction());
        }
        table.put(Operation.ALL_REDUCE, CollectiveFunction.Algorithm.COLLNET_CHAIN,
                new CollNetFunction.CollNetChainAllReduce());
        table.put(Operation.ALL_GATHER, CollectiveFunction.Algorithm.RING, new RingFunction.RingAllGather());
        table.put(Operation.REDUCE_SCATTER, CollectiveFunction.Algorithm.RING, new RingFunction.RingReduceScatter());
        table.put(Operation.BROADCAST, CollectiveFunction.Algorithm.RING, new RingBroadcast());
        table.put(Operation.REDUCE, CollectiveFunction.Algorithm.RING, new RingReduce());
        table.put(Operation.SEND_RECEIVE, CollectiveFunction.Algorithm.DIRECT, new SendReceive());
        for (Operation operation : Operation.values()) {
            if (operation.code() != Operation.SEND_RECEIVE.code()) {
                table.put(operation, CollectiveFunction.Algorithm.LOCAL, new LocalCopy());
            }
        }
        return table;
    }

    public void put(Operation operation, CollectiveFunction.Algorithm algorithm, DeviceFunction function) {
        rows[FunctionNumber.row(operation, algorithm)] = function;
    }

    /** @throws MillraceException if no function has the number, which means that the work was overwritten */
    public DeviceFunction of(int number) {
        DeviceFunction function = rows[FunctionNumber.row(number)];
        if (function == null) {
            throw new MillraceException("a kernel's work is damaged: there is no function " + number);
        }
        return function;
    }

    /** Returns the function that carries out a collective by an algorithm. */
    public CollectiveFunction collective(Operation operation, CollectiveFunction.Algorithm algorithm) {
        return (CollectiveFunction) rows[FunctionNumber.row(operation, algorithm)];
    }

    /**
     * A function of the device. For a work item it creates the block of a channel, and it describes the chunks that
     * this block sends and receives. A function has no state, and derives everything from the work item and the
     * channel. The device uses the function to run the block. The host uses it to announce the block's transfers to the
     * proxies. Device and host receive the same transfers.
     */
    public interface DeviceFunction {

        /**
         * Returns the transfers of a work item on a channel, as tasks that run at the same time. The list is empty if
         * the communicator has a single rank.
         *
         * @param number number of the function, as stored in the item's batch; it includes protocol, type and operator
         */
        List<ChannelTask> tasks(int number, MemorySegment item, DeviceCommunicator communicator, DeviceChannel channel);

        /**
         * Returns the block that runs a work item on a channel. Called on the device's thread, in the order of the
         * items in the plan.
         *
         * @param item memory of the work item; invalid after this method returns
         */
        Block block(int number, MemorySegment item, DeviceCommunicator communicator, DeviceChannel channel,
                KernelMemory lookup);
    }
}
