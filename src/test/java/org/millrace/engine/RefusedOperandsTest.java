package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.Operand;
import org.millrace.ReduceFunction;
import org.millrace.ReduceOp;

/** Every operation refuses unusable operands before the rank sends anything. */
class RefusedOperandsTest extends EngineFixture {

    private interface Call {
        void on(Communicator communicator, DeviceStream stream, Operand unusable);
    }

    private static Operand ints(int count) {
        return Operand.of(new int[count]);
    }

    /** Operations of two ranks. Each operation writes to an unusable operand of two elements. */
    private static Map<String, Call> operations() {
        Map<String, Call> calls = new LinkedHashMap<>();
        calls.put("allReduce", (c, s, bad) -> c.allReduce(bad, ReduceOp.SUM));
        calls.put("allReduce, stream", (c, s, bad) -> c.allReduce(bad, ReduceOp.SUM, s));
        calls.put("allReduce, out of place", (c, s, bad) -> c.allReduce(ints(2), bad, ReduceOp.SUM));
        calls.put("allGather", (c, s, bad) -> c.allGather(ints(1), bad));
        calls.put("allGather, stream", (c, s, bad) -> c.allGather(ints(1), bad, s));
        calls.put("reduceScatter", (c, s, bad) -> c.reduceScatter(ints(4), bad, ReduceOp.SUM));
        calls.put("broadcast", (c, s, bad) -> c.broadcast(bad, 1));
        calls.put("reduce", (c, s, bad) -> c.reduce(ints(2), bad, ReduceOp.SUM, 0));
        calls.put("gather", (c, s, bad) -> c.gather(ints(1), bad, 0));
        calls.put("scatter", (c, s, bad) -> c.scatter(null, bad, 1));
        calls.put("allToAll", (c, s, bad) -> c.allToAll(ints(2), bad));
        calls.put("receive", (c, s, bad) -> c.receive(bad, 1));
        calls.put("receive, stream", (c, s, bad) -> c.receive(bad, 1, s));
        calls.put("sendReceive", (c, s, bad) -> c.sendReceive(ints(2), 1, bad, 1));
        calls.put("allGatherv", (c, s, bad) -> c.allGatherv(ints(0), bad, 0, 2));
        calls.put("allGatherv, stream", (c, s, bad) -> c.allGatherv(ints(1), bad, s, 1, 1));
        calls.put("gatherv", (c, s, bad) -> c.gatherv(ints(1), bad, 0, 1, 1));
        calls.put("scatterv", (c, s, bad) -> c.scatterv(null, bad, 1));
        calls.put("allToAllv", (c, s, bad) -> c.allToAllv(ints(3), new long[] {0, 3}, bad, new long[] {0, 2}));
        calls.put("allToAllv, stream",
                (c, s, bad) -> c.allToAllv(ints(3), new long[] {0, 3}, bad, new long[] {0, 2}, s));
        calls.put("allReduce by a function", (c, s, bad) -> c.allReduce(bad, ReduceFunction.SUM));
        calls.put("scan", (c, s, bad) -> c.scan(bad, ReduceFunction.SUM));
        calls.put("exscan", (c, s, bad) -> c.exscan(bad, ReduceFunction.SUM));
        calls.put("allReduceWithRank", (c, s, bad) -> c.allReduceWithRank(bad, ReduceOp.MIN));
        return calls;
    }

    private static ByteBuffer filled(ByteBuffer buffer) {
        return buffer.order(ByteOrder.nativeOrder());
    }

    /**
     * Only rank 0 makes the invalid calls. If an invalid call sent anything, the following all-reduce of both ranks
     * would fail.
     */
    private void refuse(String reason, Map<String, Call> operations, List<Operand> unusable) throws Exception {
        EngineGroup.ranks(directory, 2, EngineGroup.settings(), (communicator, stream, arena) -> {
            for (Map.Entry<String, Call> each : operations.entrySet()) {
                for (Operand operand : unusable) {
                    if (communicator.rank() == 0) {
                        RuntimeException thrown = assertThrows(RuntimeException.class,
                                () -> each.getValue().on(communicator, stream, operand), each.getKey());
                        assertEquals(IllegalArgumentException.class, thrown.getClass(), each.getKey() + ": " + thrown);
                        assertTrue(thrown.getMessage().startsWith("rank 0") && thrown.getMessage().contains(reason),
                                each.getKey() + ": " + thrown.getMessage());
                    }
                    assertEquals(2, communicator.allReduce(1L, ReduceOp.SUM), each.getKey());
                }
            }
        });
    }

    @Test
    void readOnlyMemoryIsNotWritten() throws Exception {
        try (Arena arena = Arena.ofShared()) {
            refuse("is read-only", operations(),
                    List.of(Operand.of(filled(ByteBuffer.allocate(8).asReadOnlyBuffer()), DataType.INT32),
                            Operand.of(filled(ByteBuffer.allocateDirect(8).asReadOnlyBuffer()).asIntBuffer()),
                            Operand.of(arena.allocate(8, 8).asReadOnly(), DataType.INT32)));
        }
    }

    @Test
    void memoryOfAConfinedArenaIsNotUsedByOtherThreads() throws Exception {
        Map<String, Call> operations = operations();
        // The calling thread itself reads and writes the operands of these operations.
        operations.keySet().removeAll(List.of("allReduce by a function", "scan", "exscan"));
        try (Arena arena = Arena.ofConfined()) {
            Map<String, Call> onOtherThread = new LinkedHashMap<>(operations);
            onOtherThread.remove("allReduceWithRank");
            refuse("confined arena", onOtherThread, List.of(Operand.ofHost(arena.allocate(8, 8), DataType.INT32)));
        }
    }

    @Test
    void memoryOfAClosedArenaIsRefused() throws Exception {
        Map<String, Call> operations = operations();
        operations.keySet().removeAll(List.of("allReduce by a function", "scan", "exscan", "allReduceWithRank"));
        Arena arena = Arena.ofShared();
        Operand closed = Operand.ofHost(arena.allocate(8, 8), DataType.INT32);
        arena.close();
        refuse("arena that is closed", operations, List.of(closed));
    }

    /**
     * {@code duplicate()} and {@code asReadOnlyBuffer()} return big-endian buffers, whatever the original's byte order.
     */
    @Test
    void elementsInForeignByteOrderAreRefusedWithTheRemedy() {
        for (ByteBuffer buffer : List.of(ByteBuffer.allocate(16), ByteBuffer.allocateDirect(16),
                ByteBuffer.wrap(new byte[16]), filled(ByteBuffer.allocate(16)).duplicate(),
                filled(ByteBuffer.allocateDirect(16)).asReadOnlyBuffer(), filled(ByteBuffer.allocate(16)).slice(0, 8),
                ByteBuffer.allocate(16).asReadOnlyBuffer())) {
            List<Supplier<Operand>> operands = new ArrayList<>(List.of(() -> Operand.of(buffer.asIntBuffer()),
                    () -> Operand.of(buffer.asLongBuffer()), () -> Operand.of(buffer.asFloatBuffer()),
                    () -> Operand.of(buffer.asDoubleBuffer()), () -> Operand.of(buffer.asIntBuffer().duplicate()),
                    () -> Operand.of(buffer.asLongBuffer().asReadOnlyBuffer())));
            for (DataType type : DataType.values()) {
                if (type.bytes() > 1) {
                    operands.add(() -> Operand.of(buffer, type));
                } else {
                    assertEquals(buffer.remaining(), Operand.of(buffer, type).count());
                }
            }
            for (Supplier<Operand> operand : operands) {
                String text = assertThrows(IllegalArgumentException.class, operand::get).getMessage();
                assertTrue(text.contains("are BIG_ENDIAN") && text.contains("order(ByteOrder.nativeOrder())"), text);
            }
        }
    }
}
