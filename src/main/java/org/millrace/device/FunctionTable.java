package org.millrace.device;

import java.lang.foreign.MemorySegment;
import java.util.List;
import org.millrace.MillraceException;
import org.millrace.Operation;
import org.millrace.device.RingFunction.RingBroadcast;
import org.millrace.device.RingFunction.RingReduce;

/**
 * The functions that kernels can run, by operation and algorithm ({@code ncclDevFuncTable}). This is the only place
 * that decides by a function's number what is done: a new algorithm is a class and a line here.
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

    /**
     * The function of a number.
     *
     * @throws MillraceException if there is none: the work was overwritten
     */
    public DeviceFunction of(int number) {
        DeviceFunction function = rows[FunctionNumber.row(number)];
        if (function == null) {
            throw new MillraceException("a kernel's work is damaged: there is no function " + number);
        }
        return function;
    }

    /** The function that runs a collective by an algorithm. */
    public CollectiveFunction collective(Operation operation, CollectiveFunction.Algorithm algorithm) {
        return (CollectiveFunction) rows[FunctionNumber.row(operation, algorithm)];
    }

    /**
     * A function of the device: what the block of a channel does with an item of work, and what it sends and receives
     * meanwhile. It keeps nothing: all is derived from the item and the channel, by the host that announces it to the
     * proxies and by the device that does it, so that both have the same result.
     */
    public interface DeviceFunction {

        /**
         * What an item sends and receives on a channel: tasks that go on at the same time, none if the rank is alone.
         *
         * @param number of the function, from the item's batch: its protocol, type and operator
         */
        List<ChannelTask> tasks(int number, MemorySegment item, DeviceCommunicator communicator, DeviceChannel channel);

        /**
         * The block that runs an item on a channel. Called on the device's thread, in the order in which items were
         * planned.
         *
         * @param item its bytes, which are gone when this returns
         */
        Block block(int number, MemorySegment item, DeviceCommunicator communicator, DeviceChannel channel,
                KernelMemory lookup);
    }
}
