package org.millrace.device;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.millrace.DataType;
import org.millrace.Operation;
import org.millrace.ReduceOp;
import org.millrace.abi.Protocol;
import org.millrace.abi.kernel.WorkBatch;

/** Every function has a unique number that a batch can carry. */
class FunctionNumberTest {

    private record Row(Operation operation, CollectiveFunction.Algorithm algorithm) {
    }

    private static List<Row> rows() {
        List<Row> rows = new ArrayList<>();
        for (int code = 0; code <= Operation.SEND_RECEIVE.code(); code++) {
            for (CollectiveFunction.Algorithm algorithm : CollectiveFunction.Algorithm.values()) {
                rows.add(new Row(Operation.ofCode(code), algorithm));
            }
        }
        return rows;
    }

    @Test
    void everyFunctionNumberIsUniqueAndDecodable() {
        List<ReduceOp> ops = new ArrayList<>(List.of(ReduceOp.BuiltIn.values()));
        ops.add(new ReduceOp.PreMulSum(-0.375));
        Set<Integer> seen = new HashSet<>();
        for (Row kind : rows()) {
            for (Protocol protocol : Protocol.values()) {
                for (DataType type : DataType.values()) {
                    for (ReduceOp op : ops) {
                        int function = FunctionNumber.pack(kind.operation, kind.algorithm, protocol, type, op);
                        assertTrue(function >= 0 && function <= WorkBatch.MAX_FUNCTION && seen.add(function),
                                () -> kind + " has number " + function);
                        assertEquals(kind.operation, FunctionNumber.operation(function));
                        assertEquals(kind.algorithm, FunctionNumber.algorithm(function));
                        assertEquals(protocol, FunctionNumber.protocol(function));
                        assertEquals(type, FunctionNumber.type(function));
                        assertEquals(op, FunctionNumber.op(function, FunctionNumber.argument(op)));
                    }
                }
            }
        }
    }
}
