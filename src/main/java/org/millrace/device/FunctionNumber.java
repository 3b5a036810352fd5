package org.millrace.device;

import org.millrace.DataType;
import org.millrace.Operation;
import org.millrace.ReduceOp;
import org.millrace.abi.Protocol;

/**
 * The number of a device function. Each batch of work contains the number of its function. NCCL's numbers are indices
 * of a table that NCCL's build generates. Millrace's numbers encode the function in their bits. Operation and algorithm
 * select an entry of the {@link FunctionTable}; the function itself interprets protocol, type and operator.
 *
 * <pre>
 *   0           3           6          8      12    15
 *   +-----------+-----------+----------+------+-----+
 *   | operation | algorithm | protocol | type | op  |
 *   +-----------+-----------+----------+------+-----+
 * </pre>
 */
public final class FunctionNumber {

    static final int ROWS = 1 << 6;

    private static final CollectiveFunction.Algorithm[] ALGORITHMS = CollectiveFunction.Algorithm.values();
    private static final Protocol[] PROTOCOLS = Protocol.values();
    private static final ReduceOp.BuiltIn[] OPS = ReduceOp.BuiltIn.values();
    /**
     * Code of the operator that multiplies each rank's elements by a scalar and then sums them. The work item contains
     * the scalar as its argument.
     */
    private static final int PRE_MUL_SUM = OPS.length;

    private static final int ALGORITHM_SHIFT = 3;
    private static final int PROTOCOL_SHIFT = 6;
    private static final int TYPE_SHIFT = 8;
    private static final int OP_SHIFT = 12;
    private static final int OPERATION_MASK = 0x7;
    private static final int ALGORITHM_MASK = 0x7;
    private static final int PROTOCOL_MASK = 0x3;
    private static final int TYPE_MASK = 0xf;
    private static final int OP_MASK = 0x7;

    private FunctionNumber() {}

    public static int pack(Operation operation, CollectiveFunction.Algorithm algorithm, Protocol protocol,
            DataType type, ReduceOp op) {
        int opCode = op instanceof ReduceOp.BuiltIn builtIn ? builtIn.code() : PRE_MUL_SUM;
        return row(operation, algorithm) | protocol.ordinal() << PROTOCOL_SHIFT | type.code() << TYPE_SHIFT
                | opCode << OP_SHIFT;
    }

    static int row(Operation operation, CollectiveFunction.Algorithm algorithm) {
        return operation.code() | algorithm.ordinal() << ALGORITHM_SHIFT;
    }

    static int row(int number) {
        return number & ROWS - 1;
    }

    public static Operation operation(int number) {
        return Operation.ofCode(number & OPERATION_MASK);
    }

    public static CollectiveFunction.Algorithm algorithm(int number) {
        return ALGORITHMS[number >>> ALGORITHM_SHIFT & ALGORITHM_MASK];
    }

    public static Protocol protocol(int number) {
        return PROTOCOLS[number >>> PROTOCOL_SHIFT & PROTOCOL_MASK];
    }

    public static DataType type(int number) {
        return DataType.ofCode(number >>> TYPE_SHIFT & TYPE_MASK);
    }

    public static ReduceOp op(int number, long argument) {
        int op = number >>> OP_SHIFT & OP_MASK;
        return op == PRE_MUL_SUM ? new ReduceOp.PreMulSum(Double.longBitsToDouble(argument)) : OPS[op];
    }

    /**
     * Returns the bits of the operator's scalar, which the work item stores separately from the number; 0 for an
     * operator without a scalar.
     */
    public static long argument(ReduceOp op) {
        return op instanceof ReduceOp.PreMulSum(double scalar) ? Double.doubleToRawLongBits(scalar) : 0;
    }
}
