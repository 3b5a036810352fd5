package org.millrace.device.function;

import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.abi.Protocol;

/**
 * The number by which a batch of work names its device function: what NCCL finds in a table that its build generates is
 * said here bit by bit.
 *
 * <pre>
 *   0      4        6      10    13   15
 *   +------+--------+------+-----+----+
 *   | kind |protocol| type | op  | 0  |
 *   +------+--------+------+-----+----+
 * </pre>
 */
public final class FunctionNumber {

    /** What a function does, and over which connections. */
    public enum Kind {
        /** A group of one. */
        LOCAL,
        /** Around the rings. */
        RING_ALL_REDUCE,
        /** Up and down the trees. */
        TREE_ALL_REDUCE,
        /** By the network. */
        NETWORK_ALL_REDUCE,
        /** Around the rings. */
        ALL_GATHER,
        /** Around the rings. */
        REDUCE_SCATTER,
        /** Along the rings. */
        BROADCAST,
        /** Along the rings. */
        REDUCE,
        /** A send, a receive, or both. Its sizes say the protocol. */
        TRANSFER
    }

    private static final Kind[] KINDS = Kind.values();
    private static final Protocol[] PROTOCOLS = Protocol.values();
    private static final ReduceOp.BuiltIn[] OPS = ReduceOp.BuiltIn.values();
    /** Sum of what is multiplied first; by what, is the work's argument. */
    private static final int PRE_MUL_SUM = OPS.length;

    private static final int PROTOCOL_SHIFT = 4;
    private static final int TYPE_SHIFT = 6;
    private static final int OP_SHIFT = 10;
    private static final int KIND_MASK = 0xf;
    private static final int PROTOCOL_MASK = 0x3;
    private static final int TYPE_MASK = 0xf;
    private static final int OP_MASK = 0x7;

    private FunctionNumber() {}

    public static int pack(Kind kind, Protocol protocol, DataType type, ReduceOp op) {
        int opCode = op instanceof ReduceOp.BuiltIn builtIn ? builtIn.code() : PRE_MUL_SUM;
        return kind.ordinal() | protocol.ordinal() << PROTOCOL_SHIFT | type.code() << TYPE_SHIFT | opCode << OP_SHIFT;
    }

    public static Kind kind(int function) {
        return KINDS[function & KIND_MASK];
    }

    public static Protocol protocol(int function) {
        return PROTOCOLS[function >>> PROTOCOL_SHIFT & PROTOCOL_MASK];
    }

    public static DataType type(int function) {
        return DataType.ofCode(function >>> TYPE_SHIFT & TYPE_MASK);
    }

    /** @param argument of the work */
    public static ReduceOp op(int function, long argument) {
        int op = function >>> OP_SHIFT & OP_MASK;
        return op == PRE_MUL_SUM ? new ReduceOp.PreMulSum(Double.longBitsToDouble(argument)) : OPS[op];
    }

    /** What goes into the work beside the number. */
    public static long argument(ReduceOp op) {
        return op instanceof ReduceOp.PreMulSum(double scalar) ? Double.doubleToRawLongBits(scalar) : 0;
    }
}
