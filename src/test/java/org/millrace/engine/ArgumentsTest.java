package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeadlineException;
import org.millrace.DeviceStream;
import org.millrace.Millrace;
import org.millrace.MillraceException;
import org.millrace.MismatchException;
import org.millrace.Operand;
import org.millrace.ReduceFunction;
import org.millrace.ReduceOp;
import org.millrace.Serializer;

/**
 * Invalid arguments of the public API. Each call is refused before Millrace sends anything, and the group stays usable.
 */
@Tag("slow")
class ArgumentsTest {

    private static final Class<IllegalArgumentException> ILLEGAL = IllegalArgumentException.class;
    private static final Class<NullPointerException> NULL = NullPointerException.class;
    private static final Class<DeadlineException> LATE = DeadlineException.class;
    private static final Duration FOREVER = Duration.ofSeconds(Long.MAX_VALUE);

    @TempDir
    Path directory;

    private interface Call {
        void make(Communicator communicator, DeviceStream stream, Arena arena);
    }

    private static Operand two() {
        return Operand.of(new float[2]);
    }

    /** Returns memory of the device for two elements. */
    private static MemorySegment memory(Communicator communicator, Arena arena) {
        return communicator.device().allocate(16, arena);
    }

    private static Operand readOnly() {
        return Operand.of(ByteBuffer.allocate(8).asReadOnlyBuffer().order(ByteOrder.nativeOrder()), DataType.FLOAT32);
    }

    /** A call with invalid arguments, and the exception that it must throw. */
    enum Refused {
        NEGATIVE_BARRIER(ILLEGAL, "PT-1S is negative", (c, _, _) -> c.barrier(Duration.ofSeconds(-1))),
        BARRIER_WITHOUT_DEADLINE(NULL, "", (c, _, _) -> c.barrier((Duration) null)),
        OPERAND_NULL(NULL, "operand send is null", (c, _, _) -> c.allReduce((Operand) null, ReduceOp.SUM)),
        OP_NULL(NULL, "op is null", (c, _, _) -> c.allReduce(two(), (ReduceOp) null)),
        STREAM_NULL(NULL, "stream is null", (c, _, _) -> c.allReduce(two(), ReduceOp.SUM, null)),
        RECEIVE_READ_ONLY(ILLEGAL, "read-only", (c, _, _) -> c.allReduce(two(), readOnly(), ReduceOp.SUM)),
        OTHER_BYTE_ORDER(ILLEGAL, "nativeOrder",
                (c, _, _) -> c.allReduce(Operand.of(ByteBuffer.allocate(8), DataType.FLOAT32), ReduceOp.SUM)),
        OTHER_SIZE(ILLEGAL, "receive must have 2",
                (c, _, _) -> c.allReduce(two(), Operand.of(new float[3]), ReduceOp.SUM)),
        OTHER_TYPE(ILLEGAL, "of one type", (c, _, _) -> c.allReduce(two(), Operand.of(new int[2]), ReduceOp.SUM)),
        NO_EQUAL_PARTS(ILLEGAL, "equal parts",
                (c, _, _) -> c.reduceScatter(Operand.of(new float[3]), Operand.of(new float[1]), ReduceOp.SUM)),
        BROADCAST_ROOT(ILLEGAL, "no root 2", (c, _, _) -> c.broadcast(two(), 2)),
        REDUCE_ROOT(ILLEGAL, "no root -1", (c, _, _) -> c.reduce(two(), two(), ReduceOp.SUM, -1)),
        GATHER_ROOT(ILLEGAL, "no root 2", (c, _, _) -> c.gather(two(), null, 2)),
        SCATTER_ROOT(ILLEGAL, "no root 2", (c, _, _) -> c.scatter(null, two(), 2)),
        SEND_PEER(ILLEGAL, "no peer 2", (c, _, _) -> c.send(two(), 2)),
        RECEIVE_PEER(ILLEGAL, "no peer -1", (c, _, _) -> c.receive(two(), -1)),
        SEND_RECEIVE_PEER(ILLEGAL, "no rank 2", (c, _, _) -> c.sendReceive(two(), 1 - c.rank(), two(), 2)),
        SEND_RECEIVE_NULL(NULL, "receive is null", (c, _, _) -> c.sendReceive(two(), 1 - c.rank(), null, 1 - c.rank())),
        ALL_GATHERV_COUNTS(ILLEGAL, "for each of 2 ranks",
                (c, _, _) -> c.allGatherv(two(), Operand.of(new float[4]), 2)),
        ALL_GATHERV_TOO_MANY(ILLEGAL, "for each of 2 ranks",
                (c, _, _) -> c.allGatherv(two(), Operand.of(new float[6]), 2, 2, 2)),
        ALL_GATHERV_NEGATIVE(ILLEGAL, "0 or more", (c, _, _) -> c.allGatherv(two(), Operand.of(new float[4]), 2, -2)),
        ALL_GATHERV_OVERFLOW(ILLEGAL, "count of this rank",
                (c, _, _) -> c.allGatherv(two(), Operand.of(new float[4]), Long.MAX_VALUE, Long.MAX_VALUE)),
        ALL_GATHERV_PART(ILLEGAL, "count of this rank is 1",
                (c, _, _) -> c.allGatherv(two(), Operand.of(new float[4]), 1, 1)),
        ALL_GATHERV_ROOM(ILLEGAL, "are more than the 3 elements",
                (c, _, _) -> c.allGatherv(two(), Operand.of(new float[3]), 2, 2)),
        ALL_GATHERV_NULL(NULL, "operand is null", (c, _, _) -> c.allGatherv(null, Operand.of(new float[4]), 2, 2)),
        GATHERV_ROOT(ILLEGAL, "no rank 2", (c, _, _) -> c.gatherv(two(), null, 2, 2, 2)),
        GATHERV_NULL(NULL, "operand is null", (c, _, _) -> c.gatherv(null, Operand.of(new float[4]), 0, 2, 2)),
        SCATTERV_ROOT(ILLEGAL, "no rank -1", (c, _, _) -> c.scatterv(null, two(), -1, 2, 2)),
        SCATTERV_NULL(NULL, "operand is null", (c, _, _) -> c.scatterv(Operand.of(new float[4]), null, 0, 2, 2)),
        ALL_TO_ALLV_COUNTS(ILLEGAL, "for each of 2 ranks",
                (c, _, _) -> c.allToAllv(two(), new long[] {1}, two(), new long[] {1, 1})),
        OBJECT_BROADCAST_ROOT(ILLEGAL, "no rank 2", (c, _, _) -> c.broadcast("", 2, Serializer.STRING)),
        OBJECT_BROADCAST_SERIALIZER(NULL, "serializer is null", (c, _, _) -> c.broadcast("", 0, null)),
        OBJECT_GATHER_ROOT(ILLEGAL, "no rank -1", (c, _, _) -> c.gather("", -1, Serializer.STRING)),
        OBJECT_SCATTER_ROOT(ILLEGAL, "no rank 2", (c, _, _) -> c.scatter(List.of("", ""), 2, Serializer.STRING)),
        OBJECT_SEND_PEER(ILLEGAL, "no rank 2", (c, _, _) -> c.send("", 2, Serializer.STRING)),
        OBJECT_BROADCAST_NULL(NULL, "broadcast: the object is null",
                (c, _, _) -> c.broadcast(null, c.rank(), Serializer.STRING)),
        OBJECT_ALL_GATHER_NULL(NULL, "allGather: the object is null",
                (c, _, _) -> c.allGather(null, Serializer.STRING)),
        OBJECT_GATHER_NULL(NULL, "gather: the object is null", (c, _, _) -> c.gather(null, 0, Serializer.STRING)),
        OBJECT_SCATTER_NULL(NULL, "scatter: the object is null",
                (c, _, _) -> c.scatter(Arrays.asList("", null), c.rank(), Serializer.STRING)),
        OBJECT_SCATTER_LIST_NULL(NULL, "scatter: the list of objects is null",
                (c, _, _) -> c.scatter(null, c.rank(), Serializer.STRING)),
        OBJECT_ALL_TO_ALL_NULL(NULL, "allToAll: the object is null",
                (c, _, _) -> c.allToAll(Arrays.asList("", null), Serializer.STRING)),
        OBJECT_SEND_NULL(NULL, "send: the object is null", (c, _, _) -> c.send(null, 0, Serializer.STRING)),
        OBJECT_SEND_SERIALIZER(NULL, "send: the serializer is null",
                (c, _, _) -> c.send("", 0, (Serializer<String>) null)),
        OBJECT_BYTES_NULL(NULL, "allGather: the result of the serializer is null",
                (c, _, _) -> c.allGather("", Serializer.<String>of(_ -> null, _ -> ""))),
        OBJECT_ALL_REDUCE_NULL(NULL, "allReduce: the object is null",
                (c, _, _) -> c.allReduce(null, String::concat, Serializer.STRING)),
        OBJECT_ALL_REDUCE_FUNCTION(NULL, "allReduce: the function is null",
                (c, _, _) -> c.allReduce("", null, Serializer.STRING)),
        OBJECT_REDUCE_NULL(NULL, "reduce: the object is null",
                (c, _, _) -> c.reduce(null, String::concat, 0, Serializer.STRING)),
        OBJECT_REDUCE_FUNCTION(NULL, "reduce: the function is null",
                (c, _, _) -> c.reduce("", null, 0, Serializer.STRING)),
        OBJECT_REDUCE_ROOT(ILLEGAL, "reduce, root: there is no rank 2",
                (c, _, _) -> c.reduce("", String::concat, 2, Serializer.STRING)),
        OBJECT_SCAN_NULL(NULL, "scan: the object is null",
                (c, _, _) -> c.scan(null, String::concat, Serializer.STRING)),
        OBJECT_SCAN_FUNCTION(NULL, "scan: the function is null", (c, _, _) -> c.scan("", null, Serializer.STRING)),
        OBJECT_EXSCAN_FUNCTION(NULL, "exscan: the function is null",
                (c, _, _) -> c.exscan("", null, Serializer.STRING)),
        FUNCTION_VALUES_NULL(NULL, "scan: the operand values is null",
                (c, _, _) -> c.scan((Operand) null, ReduceFunction.BITWISE_OR)),
        REDUCE_FUNCTION_NULL(NULL, "allReduce: the function is null",
                (c, _, _) -> c.allReduce(two(), (ReduceFunction) null)),
        WITH_RANK_NULL(NULL, "allReduceWithRank: the operand values is null",
                (c, _, _) -> c.allReduceWithRank(null, ReduceOp.MIN)),
        WITH_RANK_OP_NULL(NULL, "allReduceWithRank: the argument op is null",
                (c, _, _) -> c.allReduceWithRank(two(), null)),
        COUNTS_NULL(NULL, "array of counts is null", (c, _, _) -> c.allToAllv(two(), null, two(), new long[] {1, 1})),
        SYNCHRONIZE_NEGATIVE(ILLEGAL, "synchronize: the deadline PT-1S is negative; give 0 or more",
                (_, s, _) -> s.synchronize(Duration.ofSeconds(-1))),
        EVENT_SYNCHRONIZE_NEGATIVE(ILLEGAL, "synchronize: the deadline PT-1S is negative; give 0 or more",
                (c, _, _) -> c.device().newEvent().synchronize(Duration.ofSeconds(-1))),
        SEND_TO_ITSELF(ILLEGAL,
                " to itself, without a matching receive: call send and receive in one group (Millrace.group),"
                        + " or sendReceive",
                (c, _, _) -> c.send(two(), c.rank())),
        RECEIVE_FROM_ITSELF(ILLEGAL, " from itself, without a matching send: call send and receive in one group",
                (c, _, _) -> c.receive(two(), c.rank())),
        SEND_TO_ITSELF_DIFFERS(ILLEGAL, "it sends 2 float on ",
                (c, _, _) -> c.sendReceive(two(), c.rank(), Operand.of(new float[3]), c.rank())),
        OBJECT_RECEIVE_PEER(ILLEGAL, "no rank 2", (c, _, _) -> c.receive(2, Serializer.STRING)),
        WITH_RANK_OP(ILLEGAL, "give MIN or MAX", (c, _, _) -> c.allReduceWithRank(two(), ReduceOp.SUM)),
        FUNCTION_TYPE(ILLEGAL, "does not take", (c, _, _) -> c.allReduce(two(), ReduceFunction.BITWISE_OR)),
        COUNT_NEGATIVE(ILLEGAL, "is negative", (c, s, a) -> {
            MemorySegment memory = memory(c, a);
            c.allReduce(memory, memory, -1, DataType.FLOAT32, ReduceOp.SUM, s);
        }),
        COUNT_OVERFLOW(ILLEGAL, "out of range", (c, s, a) -> {
            MemorySegment memory = memory(c, a);
            c.allGather(memory, memory, Long.MAX_VALUE, DataType.FLOAT32, s);
        }),
        SEND_COUNT_OVERFLOW(ILLEGAL, "out of range",
                (c, s, a) -> c.send(memory(c, a), Long.MAX_VALUE, DataType.FLOAT64, 1 - c.rank(), s)),
        SEGMENT_SMALL(ILLEGAL, "the segment has 16", (c, s, a) -> {
            MemorySegment memory = memory(c, a);
            c.allReduce(memory, memory, 5, DataType.FLOAT32, ReduceOp.SUM, s);
        }),
        SEGMENT_READ_ONLY(ILLEGAL, "read-only", (c, s, a) -> {
            MemorySegment memory = memory(c, a).asReadOnly();
            c.allReduce(memory, memory, 2, DataType.FLOAT32, ReduceOp.SUM, s);
        }),
        SEGMENT_CLOSED(ILLEGAL, "arena is closed", (c, s, _) -> {
            Arena closed = Arena.ofShared();
            MemorySegment memory = memory(c, closed);
            closed.close();
            c.allReduce(memory, memory, 2, DataType.FLOAT32, ReduceOp.SUM, s);
        }),
        OPERAND_CONFINED(ILLEGAL, "confined", (c, _, _) -> {
            try (Arena confined = Arena.ofConfined()) {
                c.allReduce(Operand.ofHost(confined.allocate(8, 8), DataType.FLOAT32), ReduceOp.SUM);
            }
        }),
        STREAM_CLOSED(ILLEGAL, "not an open stream", (c, _, _) -> {
            DeviceStream closed = c.device().newStream();
            closed.close();
            c.allReduce(two(), ReduceOp.SUM, closed);
        }),
        ALLOCATION_NEGATIVE(ILLEGAL, "-1 bytes", (c, _, a) -> c.device().allocate(-1, a)),
        VIEW_NEGATIVE(ILLEGAL, "no -1 bytes", (c, _, _) -> c.device().view(8, -1)),
        FUNCTION_NULL(NULL, "function", (_, s, _) -> s.call(null)),
        COPY_OF_OTHER_SIZE(ILLEGAL, "of one size",
                (c, s, a) -> c.device().copyToDevice(MemorySegment.ofArray(new byte[4]), memory(c, a), s)),
        COPY_INTO_READ_ONLY(ILLEGAL, "read-only",
                (c, s, a) -> c.device().copyToHost(memory(c, a), MemorySegment.ofArray(new byte[16]).asReadOnly(), s)),
        COPY_FROM_CONFINED(ILLEGAL, "confined", (c, s, a) -> {
            try (Arena confined = Arena.ofConfined()) {
                c.device().copyToDevice(confined.allocate(16), memory(c, a), s);
            }
        }),
        COPY_FROM_CLOSED(ILLEGAL, "arena that is closed", (c, s, a) -> {
            Arena closed = Arena.ofShared();
            MemorySegment memory = closed.allocate(16);
            closed.close();
            c.device().copyToDevice(memory, memory(c, a), s);
        }),
        SLICE(IndexOutOfBoundsException.class, "", (_, _, _) -> two().slice(1, 2)),
        BUCKET_EMPTY(ILLEGAL, "bucket", (_, _, _) -> Operand.bucket());

        private final Class<? extends Exception> type;
        private final String text;
        private final Call call;

        Refused(Class<? extends Exception> type, String text, Call call) {
            this.type = type;
            this.text = text;
            this.call = call;
        }
    }

    @ParameterizedTest
    @EnumSource
    void aCallThatIsRefusedLeavesTheGroupUsable(Refused refused) throws Exception {
        EngineGroup.ranks(directory, 2, EngineGroup.settings(), (communicator, stream, arena) -> {
            Exception thrown = assertThrows(refused.type, () -> refused.call.make(communicator, stream, arena));
            assertTrue(String.valueOf(thrown.getMessage()).contains(refused.text), thrown.toString());
            assertEquals(3, communicator.allReduce(communicator.rank() + 1L, ReduceOp.SUM));
            communicator.barrier(Duration.ofSeconds(EngineGroup.TIMEOUT_SECONDS));
        });
    }

    @Test
    void longestDurationsAreAllowed() throws Exception {
        EngineGroup.ranks(directory, 2, EngineGroup.settings(), (communicator, stream, _) -> {
            communicator.allReduce(two(), ReduceOp.SUM, stream);
            stream.synchronize(FOREVER);
            communicator.barrier(FOREVER);
        });
    }

    @Test
    void aLocalGroupHasOneRankOrMore() {
        for (int ranks : new int[] {0, -1}) {
            assertTrue(assertThrows(ILLEGAL, () -> Millrace.local(ranks, _ -> {})).getMessage()
                    .contains(ranks + " ranks"));
        }
        assertThrows(NULL, () -> Millrace.local(1, null));
    }

    @Test
    void durationsOfTheBuilderAreRefusedWhenItJoins() {
        for (Duration unusable : List.of(Duration.ZERO, Duration.ofSeconds(-1), FOREVER)) {
            assertTrue(assertThrows(ILLEGAL,
                    () -> Millrace.builder().device("host").lateDeadline(unusable).runLocally(1, _ -> {})).getMessage()
                    .contains("MILLRACE_LATE_DEADLINE"));
        }
    }

    @Test
    void aCommunicatorThatIsClosedRefusesEachCall() throws Exception {
        EngineGroup.ranks(directory, 2, EngineGroup.settings(), communicator -> {
            communicator.close();
            for (Call call : Arrays.<Call>asList((c, _, _) -> c.barrier(), (c, _, _) -> c.split(0, 0),
                    (c, _, _) -> c.barrier(Duration.ofSeconds(1)), (c, _, a) -> c.register(a.allocate(8)),
                    (c, _, _) -> c.allGather("", Serializer.STRING), (c, _, _) -> c.group(() -> {}))) {
                try (Arena arena = Arena.ofShared()) {
                    MillraceException closed =
                            assertThrows(MillraceException.class, () -> call.make(communicator, null, arena));
                    assertTrue(closed.getMessage().contains("communicator is closed"), closed.getMessage());
                }
            }
        });
    }

    @Test
    void aMissingSplitIsReportedAsSplit() throws Exception {
        Map<String, String> settings = EngineGroup.settings("MILLRACE_CONNECT_DEADLINE", "2s");
        CountDownLatch failed = new CountDownLatch(1);
        List<Throwable> thrown = EngineGroup.thrown(directory, 2, settings, communicator -> {
            if (communicator.rank() == 1) {
                failed.await();
                return;
            }
            try {
                communicator.split(0, 0);
            } finally {
                failed.countDown();
            }
        });
        String message = assertInstanceOf(LATE, thrown.get(0)).getMessage();
        assertTrue(message.startsWith("split ")
                && message.contains("has not called it within 2 s (MILLRACE_CONNECT_DEADLINE)"), message);
    }

    @Test
    void differentNetworksAreAMismatch() throws Exception {
        List<Throwable> thrown = EngineGroup.call(2, rank -> () -> {
            EngineGroup.join(directory, rank, 2, EngineGroup.settings("MILLRACE_NET", rank == 0 ? "socket" : "shm"))
                    .close();
            return null;
        });
        for (Throwable each : thrown) {
            assertTrue(assertInstanceOf(MismatchException.class, each).getMessage().contains("MILLRACE_NET is "),
                    each.toString());
        }
    }

    @Test
    void objectsOfDifferentSizesAreGatheredWithoutOneArrayForAll() throws Exception {
        EngineGroup.ranks(directory, 2, EngineGroup.settings(), communicator -> {
            String mine = "x".repeat(1000 * communicator.rank());
            assertEquals(List.of("", "x".repeat(1000)), communicator.allGather(mine, Serializer.STRING));
            assertEquals(communicator.rank() == 1 ? List.of("", "x".repeat(1000)) : List.of(),
                    communicator.gather(mine, 1, Serializer.STRING));
            assertEquals(mine, communicator.scatter(List.of("", "x".repeat(1000)), 0, Serializer.STRING));
        });
    }
}
