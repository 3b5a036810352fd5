package org.millrace.proxy.spi;

import org.millrace.DataType;
import org.millrace.Operation;
import org.millrace.ReduceOp;

/**
 * The identity of an operation, packed in one word. A receiver compares the peer's word with its own word.
 *
 * <pre>
 *   0        8        16       24       32                              63
 *  +--------+--------+--------+--------+--------------------------------+
 *  | code   | type   | op     | 0      | root                           |
 *  +--------+--------+--------+--------+--------------------------------+
 * </pre>
 */
public final class OperationSignature {

    private static final int TYPE_SHIFT = 8;
    private static final int OP_SHIFT = 16;
    private static final int ROOT_SHIFT = 32;
    private static final int PRE_MUL_SUM = ReduceOp.BuiltIn.values().length;

    private OperationSignature() {}

    /**
     * {@return a packed signature}
     *
     * @param operation operation; its {@linkplain Operation#code() code} is packed. An operation that consists of sends
     *                  and receives has the code of {@link Operation#SEND_RECEIVE}.
     * @param op        reduction of elements. The factor of a pre-multiplied sum is not packed, because it differs
     *                  between ranks.
     * @param root      root rank, or 0
     */
    public static long pack(Operation operation, DataType type, ReduceOp op, int root) {
        int opCode = op instanceof ReduceOp.BuiltIn builtIn ? builtIn.code() : PRE_MUL_SUM;
        return operation.code() | (long) type.code() << TYPE_SHIFT | (long) opCode << OP_SHIFT
                | (long) root << ROOT_SHIFT;
    }

    /**
     * {@return the operation of a signature; {@link Operation#SEND_RECEIVE} for an operation that consists of sends and
     * receives} The signature must have been packed in this process.
     */
    public static Operation operation(long signature) {
        return Operation.ofCode((int) signature & 0xff);
    }

    /**
     * {@return a description for a message, for instance {@code "operation 7: all_reduce of 1024 float, sum"}}
     *
     * @param signature a packed signature, perhaps from an untrusted peer
     */
    public static String describe(long signature, long opCount, long count) {
        return "operation " + opCount + ": " + describe(signature, count);
    }

    /**
     * {@return a description for a message, for instance {@code "all_reduce of 1024 float, sum"}}
     *
     * @param signature a packed signature, perhaps from an untrusted peer
     */
    public static String describe(long signature, long count) {
        int code = (int) signature & 0xff;
        int type = (int) (signature >>> TYPE_SHIFT) & 0xff;
        int op = (int) (signature >>> OP_SHIFT) & 0xff;
        int root = (int) (signature >>> ROOT_SHIFT);
        Operation operation = code <= Operation.SEND_RECEIVE.code() ? Operation.ofCode(code) : null;
        String typeName = type < DataType.values().length ? DataType.ofCode(type).label() : "type " + type;
        String opName =
                op < PRE_MUL_SUM ? ReduceOp.BuiltIn.values()[op].label() : op == PRE_MUL_SUM ? "mulsum" : "op " + op;
        return (operation == null ? "kind " + code : operation.label()) + " of " + count + " " + typeName
                + (operation == null || operation.reduces() ? ", " + opName : "")
                + (operation != null && operation.hasRoot() ? ", root " + root : "");
    }
}
