package org.millrace.device;

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
        table.put(Operation.ALL_REDUCE, Algorithm.RING, new RingAllReduce());
        table.put(Operation.ALL_REDUCE, Algorithm.TREE, new TreeAllReduce());
        for (Operation operation : List.of(Operation.ALL_REDUCE, Operation.ALL_GATHER, Operation.REDUCE_SCATTER)) {
            table.put(operation, Algorithm.COLLNET_DIRECT, new CollNetFunction());
        }
        table.put(Operation.ALL_REDUCE, Algorithm.COLLNET_CHAIN, new CollNetChainAllReduce());
        table.put(Operation.ALL_GATHER, Algorithm.RING, new RingAllGather());
        table.put(Operation.REDUCE_SCATTER, Algorithm.RING, new RingReduceScatter());
        table.put(Operation.BROADCAST, Algorithm.RING, new RingBroadcast());
        table.put(Operation.REDUCE, Algorithm.RING, new RingReduce());
        table.put(Operation.SEND_RECEIVE, Algorithm.DIRECT, new SendReceive());
        for (Operation operation : Operation.values()) {
            if (operation.code() != Operation.SEND_RECEIVE.code()) {
                table.put(operation, Algorithm.LOCAL, new LocalCopy());
            }
        }
        return table;
    }

    public void put(Operation operation, Algorithm algorithm, DeviceFunction function) {
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
    public CollectiveFunction collective(Operation operation, Algorithm algorithm) {
        return (CollectiveFunction) rows[FunctionNumber.row(operation, algorithm)];
    }
}
