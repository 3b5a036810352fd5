package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.Device;
import org.millrace.DeviceStream;
import org.millrace.Millrace;
import org.millrace.MillraceException;
import org.millrace.MismatchException;
import org.millrace.Operand;
import org.millrace.Plan;
import org.millrace.ReduceOp;
import org.millrace.operation.StagingDevice;

/** Operations with operands of any kind, and their stages. */
class TypedOperationsTest extends EngineFixture {

    private interface Body {
        void run(Communicator communicator, DeviceStream stream) throws Exception;
    }

    private void ranks(int ranks, Body body) throws InterruptedException {
        ranks(ranks, EngineGroup.settings(), body);
    }

    private void ranks(int ranks, Map<String, String> settings, Body body) throws InterruptedException {
        EngineGroup.ranks(directory, ranks, settings, communicator -> {
            try (DeviceStream stream = communicator.device().newStream()) {
                body.run(communicator, stream);
            }
        });
    }

    private static void await(CompletionStage<Void> stage) throws Exception {
        stage.toCompletableFuture().get(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS);
    }

    private static Throwable failureOf(CompletionStage<Void> stage) {
        return assertThrows(ExecutionException.class, () -> await(stage)).getCause();
    }

    @Test
    void buffersFromPositionToLimit() throws Exception {
        ranks(2, (communicator, stream) -> {
            for (ByteBuffer buffer : List.of(ByteBuffer.allocate(16), ByteBuffer.allocateDirect(16))) {
                buffer.order(ByteOrder.nativeOrder()).putInt(7).putInt(communicator.rank() + 1).putInt(4).putInt(9);
                buffer.position(4).limit(12);
                await(communicator.allReduce(Operand.of(buffer, DataType.INT32), ReduceOp.SUM, stream));
                assertEquals(List.of(4, 12), List.of(buffer.position(), buffer.limit()));
                buffer.clear();
                assertEquals(List.of(7, 3, 8, 9),
                        List.of(buffer.getInt(0), buffer.getInt(4), buffer.getInt(8), buffer.getInt(12)));
                // the INT32 operand begins at byte 1 of a buffer of bytes, so its address is no multiple of 4
                buffer.position(3).limit(8);
                buffer.put(3, (byte) communicator.rank());
                await(communicator.broadcast(Operand.of(buffer, DataType.INT8), 1, stream));
                assertEquals(1, buffer.get(3));
                await(communicator.allReduce(Operand.of(buffer.position(1).limit(5), DataType.INT32), ReduceOp.MAX,
                        stream));
            }
            ByteBuffer foreign = ByteBuffer.allocate(8);
            refused("call order(ByteOrder.nativeOrder()) of its ByteBuffer",
                    () -> communicator.allReduce(Operand.of(foreign, DataType.FLOAT32), ReduceOp.SUM, stream));
            refused("is read-only",
                    () -> communicator.allReduce(
                            Operand.of(ByteBuffer.allocate(8).asReadOnlyBuffer().order(ByteOrder.nativeOrder()),
                                    DataType.INT64),
                            ReduceOp.SUM, stream));
        });
    }

    private static void refused(String what, Runnable call) {
        RuntimeException thrown = assertThrows(IllegalArgumentException.class, call::run);
        assertTrue(thrown.getMessage().contains(what), thrown.getMessage());
    }

    @Test
    void everyOperation() throws Exception {
        ranks(3, (communicator, stream) -> {
            int rank = communicator.rank();
            int[] mine = {10 * rank, 10 * rank + 1};
            int[] six = {rank, rank + 1, rank + 2, rank + 3, rank + 4, rank + 5};
            int[] all = new int[6];
            int[] two = new int[2];
            int[] sum = new int[2];
            int[] gathered = new int[6];
            int[] exchanged = new int[6];
            int[] scattered = new int[2];
            int[] next = new int[2];
            CompletionStage<Void> gather = communicator.allGather(Operand.of(mine), Operand.of(all), stream);
            communicator.reduceScatter(Operand.of(six), Operand.of(two), ReduceOp.SUM, stream);
            communicator.reduce(Operand.of(mine), rank == 1 ? Operand.of(sum) : null, ReduceOp.SUM, 1, stream);
            communicator.gather(Operand.of(mine), rank == 2 ? Operand.of(gathered) : null, 2, stream);
            communicator.scatter(rank == 0 ? Operand.of(new int[] {1, 2, 3, 4, 5, 6}) : null, Operand.of(scattered), 0,
                    stream);
            communicator.allToAll(Operand.of(six), Operand.of(exchanged), stream);
            CompletionStage<Void>[] stages = stages(2);
            communicator.group(() -> {
                stages[0] = communicator.send(Operand.of(mine), (rank + 1) % 3, stream);
                stages[1] = communicator.receive(Operand.of(next), (rank + 2) % 3, stream);
                assertFalse(stages[1].toCompletableFuture().isDone(), "nothing of a group runs before it ends");
            });
            await(stages[1]);
            await(stages[0]);
            await(gather);
            assertArrayEquals(new int[] {0, 1, 10, 11, 20, 21}, all);
            assertArrayEquals(new int[] {3 + 6 * rank, 6 + 6 * rank}, two);
            assertArrayEquals(rank == 1 ? new int[] {30, 33} : new int[2], sum);
            assertArrayEquals(rank == 2 ? all : new int[6], gathered);
            assertArrayEquals(new int[] {2 * rank + 1, 2 * rank + 2}, scattered);
            assertArrayEquals(
                    new int[] {2 * rank, 2 * rank + 1, 2 * rank + 1, 2 * rank + 2, 2 * rank + 2, 2 * rank + 3},
                    exchanged);
            assertArrayEquals(new int[] {10 * ((rank + 2) % 3), 10 * ((rank + 2) % 3) + 1}, next);
        });
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static CompletionStage<Void>[] stages(int count) {
        return new CompletionStage[count];
    }

    /** Arrays are read and written in the order of the stream, so no thread has to wait between two operations. */
    @Test
    void operationsOnOneArrayFollowEachOther() throws Exception {
        ranks(2, (communicator, stream) -> {
            long[] values = new long[1000];
            java.util.Arrays.fill(values, 1);
            CompletionStage<Void> last = null;
            for (int i = 0; i < 20; i++) {
                last = communicator.allReduce(Operand.of(values), ReduceOp.SUM, stream);
            }
            await(last);
            assertEquals(1000 << 20, java.util.Arrays.stream(values).sum());
        });
    }

    @Test
    void theStageOfAnOperationDoesNotWaitForLaterOnes() throws Exception {
        CountDownLatch seen = new CountDownLatch(2);
        ranks(2, (communicator, stream) -> {
            CompletionStage<Void> first = communicator.allReduce(Operand.of(new int[4]), ReduceOp.SUM, stream);
            CountDownLatch over = new CountDownLatch(1);
            stream.call(() -> {
                try {
                    over.await(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS);
                } catch (InterruptedException early) {
                    throw new IllegalStateException(early);
                }
            });
            await(first);
            seen.countDown();
            over.countDown();
            assertTrue(seen.await(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS));
        });
    }

    @Test
    void operandsLieWhereTheDeviceUsesThemOrAreCopied() throws Exception {
        ranks(2, (communicator, stream) -> {
            try (Arena arena = Arena.ofShared(); Arena confined = Arena.ofConfined()) {
                MemorySegment data = communicator.device().allocate(12, arena);
                data.set(ValueLayout.JAVA_INT, 4, communicator.rank() + 1);
                Operand three = Operand.of(data, DataType.INT32);
                assertEquals(3, three.count());
                await(communicator.allReduce(three.slice(1, 1), ReduceOp.SUM, stream));
                assertEquals(3, data.get(ValueLayout.JAVA_INT, 4));
                assertThrows(IndexOutOfBoundsException.class, () -> three.slice(1, 3));
                MemorySegment heap = MemorySegment.ofArray(new short[] {Float.floatToFloat16(1.5f)});
                await(communicator.allReduce(Operand.of(heap, DataType.FLOAT16), ReduceOp.SUM, stream));
                assertEquals(3f, Float.float16ToFloat(heap.get(ValueLayout.JAVA_SHORT, 0)));
                refused("not a whole number of int64 elements", () -> Operand.of(data, DataType.INT64));
                refused("lies in a confined arena", () -> communicator
                        .allReduce(Operand.ofHost(confined.allocate(8), DataType.INT64), ReduceOp.SUM, stream));
                Arena closed = Arena.ofShared();
                Operand gone = Operand.ofHost(closed.allocate(8), DataType.INT64);
                closed.close();
                refused("arena that is closed", () -> communicator.allReduce(gone, ReduceOp.SUM, stream));
            }
        });
    }

    @Test
    void operandsThatDoNotFitAreRefused() throws Exception {
        ranks(2, (communicator, stream) -> {
            refused("send has elements of int32 and receive of float", () -> communicator
                    .allReduce(Operand.of(new int[2]), Operand.of(new float[2]), ReduceOp.SUM, stream));
            refused("all_gather of 2 ranks: send has 2 elements, so receive must have 4, and has 3",
                    () -> communicator.allGather(Operand.of(new int[2]), Operand.of(new int[3]), stream));
            refused("reduce_scatter: send has 3 elements, which are not 2 equal parts", () -> communicator
                    .reduceScatter(Operand.of(new int[3]), Operand.of(new int[1]), ReduceOp.SUM, stream));
            refused("there is no root 2", () -> communicator.broadcast(Operand.of(new int[2]), 2, stream));
            assertThrows(NullPointerException.class,
                    () -> communicator.allReduce((Operand) null, ReduceOp.SUM, stream));
            assertThrows(NullPointerException.class,
                    () -> communicator.allReduce(Operand.of(new int[1]), ReduceOp.SUM, null));
            assertThrows(NullPointerException.class,
                    () -> communicator.allReduce(Operand.of(new int[1]), null, stream));
            await(communicator.allReduce(Operand.of(new int[0]), ReduceOp.SUM, stream));
        });
    }

    @Test
    void aFailureIsTheStages() throws Exception {
        ranks(2, (communicator, stream) -> {
            int[] values = {1};
            Throwable thrown = failureOf(communicator.allReduce(Operand.of(values),
                    communicator.rank() == 0 ? ReduceOp.SUM : ReduceOp.MAX, stream));
            assertEquals(1 - communicator.rank(),
                    assertInstanceOf(MismatchException.class, thrown).peer().orElseThrow());
            assertArrayEquals(new int[] {1}, values);
            assertThrows(MillraceException.class,
                    () -> communicator.allReduce(Operand.of(values), ReduceOp.SUM, stream));
        });
    }

    /**
     * The launch of the second communicator of a group fails, so its operation never reaches the stream. The stage of
     * this operation must fail.
     */
    @Test
    void aGroupThatIsNotLaunchedFailsItsStages() throws Exception {
        ranks(1, (communicator, stream) -> {
            CompletionStage<Void>[] stages = stages(2);
            try (Communicator other = communicator.split(0, 0).orElseThrow()) {
                MillraceException thrown = assertThrows(MillraceException.class, () -> Millrace.group(() -> {
                    stages[0] = communicator.allReduce(Operand.of(new int[1]), ReduceOp.SUM, stream);
                    stages[1] = other.allReduce(Operand.of(new int[1]), ReduceOp.SUM, stream);
                    other.abort();
                }));
                assertEquals(thrown, failureOf(stages[1]));
                await(stages[0]);
            }
        });
    }

    @Test
    void aPlanTakesOperandsOfTheDeviceAlone() throws Exception {
        ranks(2, (communicator, stream) -> {
            try (Arena arena = Arena.ofShared()) {
                MemorySegment data = communicator.device().allocate(8, arena);
                data.set(ValueLayout.JAVA_LONG, 0, 1);
                CompletionStage<Void>[] stages = stages(1);
                try (Plan plan = communicator.plan(stream, () -> stages[0] =
                        communicator.allReduce(Operand.of(data, DataType.INT64), ReduceOp.SUM, stream))) {
                    assertInstanceOf(IllegalStateException.class, failureOf(stages[0]));
                    plan.launch(stream);
                    plan.launch(stream);
                    await(stream.completion());
                    assertEquals(4, data.get(ValueLayout.JAVA_LONG, 0));
                }
                IllegalStateException refused = assertThrows(IllegalStateException.class, () -> communicator
                        .plan(stream, () -> communicator.allReduce(Operand.of(new int[1]), ReduceOp.SUM, stream)));
                assertTrue(refused.getMessage().contains("take memory from Device.allocate"), refused.getMessage());
                await(communicator.allReduce(Operand.of(new int[1]), ReduceOp.SUM, stream));
            }
        });
    }

    /**
     * Operations copy an array into device memory. An operation reuses the device memory that the previous operation
     * used for its array. The communicator frees this memory.
     */
    @Test
    void memoryForArraysIsUsedAgain() throws Exception {
        long[] first = new long[1];
        Device[] device = new Device[1];
        ranks(1, (communicator, stream) -> {
            device[0] = communicator.device();
            CompletableFuture<Void> warm =
                    communicator.allReduce(Operand.of(new int[100]), ReduceOp.SUM, stream).toCompletableFuture();
            await(warm);
            try (var lease = ((StagingDevice) communicator.device()).staging().take(400)) {
                first[0] = lease.memory().address();
            }
            await(communicator.allReduce(Operand.of(new int[100]), ReduceOp.SUM, stream));
            try (var lease = ((StagingDevice) communicator.device()).staging().take(400);
                    var another = ((StagingDevice) communicator.device()).staging().take(400)) {
                assertEquals(first[0], lease.memory().address());
                assertEquals(400, another.memory().byteSize());
                assertTrue(another.memory().address() != first[0]);
            }
        });
        assertThrows(IllegalStateException.class, () -> ((StagingDevice) device[0]).staging().take(400));
    }

    @Test
    void aCommunicatorHasOneStreamOfItsOwnUntilItIsClosed() throws Exception {
        ranks(2, (communicator, stream) -> {
            int[] values = {1};
            DeviceStream own = communicator.stream();
            communicator.allReduce(Operand.of(values), ReduceOp.SUM, own);
            await(communicator.allReduce(Operand.of(values), ReduceOp.SUM, communicator.stream()));
            assertArrayEquals(new int[] {4}, values);
            assertSame(own, communicator.stream());
            try (Communicator other = communicator.split(0, 0).orElseThrow()) {
                await(other.barrier(other.stream()));
            }
            await(communicator.barrier(own));
            assertThrows(MillraceException.class, () -> {
                communicator.close();
                communicator.stream();
            });
        });
    }

    @Test
    void whatIsClosedSaysSoOfArraysAndStreamsToo() throws Exception {
        Communicator[] closed = new Communicator[1];
        DeviceStream[] old = new DeviceStream[1];
        ranks(1, (communicator, stream) -> {
            closed[0] = communicator;
            old[0] = stream;
        });
        for (Executable call : List.<Executable>of(
                () -> closed[0].allReduce(Operand.of(new int[1]), ReduceOp.SUM, old[0]),
                () -> closed[0].device().newStream())) {
            MillraceException refused = assertThrows(MillraceException.class, call);
            assertTrue(refused.getMessage().contains("the communicator is closed"), refused.getMessage());
        }
    }
}
