package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.MemorySegment;
import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.Operand;
import org.millrace.ReduceFunction;
import org.millrace.ReduceOp;
import org.millrace.operation.HeapAddress;
import org.millrace.operation.StagingDevice;

/** Operands on the heap: large arrays and buffers, which operations use in place, together with small operands. */
class HeapOperandsTest extends EngineFixture {

    /** Number of elements of a rank: {@value}. The elements of one rank already occupy more than 4 MiB. */
    private static final int COUNT = (1 << 20) + 5;

    private static int[] filled(int count, int value) {
        int[] array = new int[count];
        Arrays.setAll(array, i -> value + i % 1000);
        return array;
    }

    private static int[] concatenated(int ranks, java.util.function.IntFunction<int[]> part) {
        return IntStream.range(0, ranks).mapToObj(part).flatMapToInt(Arrays::stream).toArray();
    }

    /** Returns the memory that communicators of this device hold for copies of operands, in bytes. */
    private static long staged(Communicator communicator) throws ReflectiveOperationException {
        Object staging = ((StagingDevice) communicator.device()).staging();
        long bytes = 0;
        for (Object block : (List<?>) value(staging, "all")) {
            bytes += ((MemorySegment) value(block, "memory")).byteSize();
        }
        return bytes;
    }

    private static Object value(Object owner, String field) throws ReflectiveOperationException {
        var accessible = owner.getClass().getDeclaredField(field);
        accessible.setAccessible(true);
        return accessible.get(owner);
    }

    @ParameterizedTest
    @Tag("slow")
    @CsvSource({"1, shm, Simple", "3, shm, LL", "2, shm, LL128", "3, socket, Simple", "2, socket, Simple",
            "4, p2p, Simple"})
    void everyOperationUsesLargeArraysInPlaceOnEveryRoute(int size, String network, String protocol) throws Exception {
        everyOperationUsesLargeArraysInPlace(size, network, protocol);
    }

    @ParameterizedTest
    @CsvSource("2, shm, Simple")
    void everyOperationUsesLargeArraysInPlace(int size, String network, String protocol) throws Exception {
        EngineGroup.ranks(directory, size,
                EngineGroup.settings("MILLRACE_NET", network.equals("socket") ? "socket" : "shm", "NCCL_PROTO",
                        protocol, "NCCL_P2P_DISABLE", network.equals("p2p") ? "0" : "1", "NCCL_SHM_DISABLE",
                        network.equals("socket") ? "1" : "0"),
                (communicator, stream, arena) -> {
                    everyOperation(communicator, stream);
                    assertTrue(staged(communicator) < 1 << 20, staged(communicator) + " bytes were staged");
                });
    }

    private static void everyOperation(Communicator communicator, DeviceStream stream) throws Exception {
        int rank = communicator.rank();
        int size = communicator.size();
        int[] mine = filled(COUNT, rank);
        int[] sum = filled(COUNT, 0);
        Arrays.setAll(sum, i -> size * sum[i] + size * (size - 1) / 2);
        int[] all = concatenated(size, each -> filled(COUNT, each));

        int[] values = mine.clone();
        communicator.allReduce(Operand.of(values), ReduceOp.SUM, stream).toCompletableFuture().get();
        assertArrayEquals(sum, values);
        int[] result = new int[COUNT];
        communicator.allReduce(Operand.of(mine), Operand.of(result), ReduceOp.SUM);
        assertArrayEquals(sum, result);
        communicator.allReduce(Operand.of(mine), Operand.of(result), ReduceOp.AVG);
        assertArrayEquals(Arrays.stream(sum).map(each -> each / size).toArray(), result);
        communicator.allReduce(Operand.of(mine), Operand.of(result), ReduceOp.MAX);
        assertArrayEquals(filled(COUNT, size - 1), result);
        float[] floats = new float[COUNT];
        Arrays.fill(floats, rank + 1);
        communicator.allReduce(Operand.of(floats), ReduceOp.AVG);
        assertEquals((size + 1) / 2f, floats[COUNT - 1], 1e-6);
        double[] scaled = new double[COUNT];
        Arrays.fill(scaled, 3);
        communicator.allReduce(Operand.of(scaled, 1, COUNT), new ReduceOp.PreMulSum(0.5));
        assertEquals(List.of(3.0, 1.5 * size, 1.5 * size), List.of(scaled[0], scaled[1], scaled[COUNT - 1]));
        short[] halves = new short[COUNT * 2];
        Arrays.fill(halves, Float.floatToFloat16(1.5f));
        communicator.allReduce(Operand.of(MemorySegment.ofArray(halves), DataType.FLOAT16), ReduceOp.SUM);
        assertEquals(1.5f * size, Float.float16ToFloat(halves[2 * COUNT - 1]));

        int[] gathered = new int[size * COUNT];
        communicator.allGather(Operand.of(mine), Operand.of(gathered));
        assertArrayEquals(all, gathered);
        communicator.reduceScatter(Operand.of(concatenated(size, _ -> mine)), Operand.of(result), ReduceOp.SUM);
        assertArrayEquals(sum, result);
        int[] told = rank == size - 1 ? mine.clone() : new int[COUNT];
        communicator.broadcast(Operand.of(told), size - 1);
        assertArrayEquals(filled(COUNT, size - 1), told);
        Arrays.fill(result, 0);
        communicator.reduce(Operand.of(mine), rank == 0 ? Operand.of(result) : null, ReduceOp.SUM, 0);
        assertArrayEquals(rank == 0 ? sum : new int[COUNT], result);
        Arrays.fill(gathered, 0);
        communicator.gather(Operand.of(mine), rank == 0 ? Operand.of(gathered) : null, 0);
        assertArrayEquals(rank == 0 ? all : new int[size * COUNT], gathered);
        communicator.scatter(rank == 0 ? Operand.of(all) : null, Operand.of(result), 0);
        assertArrayEquals(mine, result);
        communicator.allToAll(Operand.of(concatenated(size, _ -> mine)), Operand.of(gathered));
        assertArrayEquals(all, gathered);
        communicator.sendReceive(Operand.of(mine), (rank + 1) % size, Operand.of(result), (rank + size - 1) % size);
        assertArrayEquals(filled(COUNT, (rank + size - 1) % size), result);
        long[] counts = new long[size];
        Arrays.fill(counts, COUNT);
        Arrays.fill(gathered, 0);
        communicator.allGatherv(Operand.of(mine), Operand.of(gathered), counts);
        assertArrayEquals(all, gathered);
        Arrays.fill(gathered, 0);
        communicator.allToAllv(Operand.of(concatenated(size, _ -> mine)), counts, Operand.of(gathered), counts);
        assertArrayEquals(all, gathered);
    }

    /**
     * Some operations would overwrite elements before they have sent these elements. Such an operation copies the
     * elements first. The elements of a small array are always copied.
     */
    @ParameterizedTest
    @CsvSource({"100, shm", "1100000, shm", "1100000, socket"})
    void operandsThatOverlapOnTheHeapGiveTheResultOfCopies(int count, String network) throws Exception {
        EngineGroup.ranks(directory, 2, EngineGroup.settings("MILLRACE_NET", network), communicator -> {
            int rank = communicator.rank();
            int[] swapped = filled(count, rank);
            communicator.sendReceive(Operand.of(swapped), 1 - rank, Operand.of(swapped), 1 - rank);
            assertArrayEquals(filled(count, 1 - rank), swapped);
            int[] both = concatenated(2, part -> filled(count, 10 * rank + part));
            long[] counts = {count, count};
            communicator.allToAllv(Operand.of(both), counts, Operand.of(both), counts);
            assertArrayEquals(concatenated(2, part -> filled(count, 10 * part + rank)), both);
            int[] all = concatenated(2, part -> filled(count, part == rank ? 7 * rank : 0));
            communicator.allGather(Operand.of(all, rank * count, (rank + 1) * count), Operand.of(all));
            assertArrayEquals(concatenated(2, part -> filled(count, 7 * part)), all);
            communicator.reduceScatter(Operand.of(all), Operand.of(all, 0, count), ReduceOp.SUM);
            assertArrayEquals(Arrays.stream(filled(count, 7 * rank)).map(each -> 2 * each).toArray(),
                    Arrays.copyOf(all, count));
            int[] shifted = filled(count + 1, rank);
            communicator.allReduce(Operand.of(shifted, 0, count), Operand.of(shifted, 1, count + 1), ReduceOp.SUM);
            assertArrayEquals(Arrays.stream(filled(count, 0)).map(each -> 2 * each + 1).toArray(),
                    Arrays.copyOfRange(shifted, 1, count + 1));
        });
    }

    /** A read-only buffer can be sent by every operation, and its elements stay unchanged. */
    @ParameterizedTest
    @CsvSource({"8, false", "8, true", "2200000, false", "2200000, true"})
    void readOnlyBuffersAreSent(int count, boolean direct) throws Exception {
        EngineGroup.ranks(directory, 2, EngineGroup.settings(), (communicator, stream, arena) -> {
            int rank = communicator.rank();
            ByteBuffer bytes = direct ? ByteBuffer.allocateDirect(4 * count) : ByteBuffer.allocate(4 * count);
            bytes.order(ByteOrder.nativeOrder()).asIntBuffer().put(filled(count, rank));
            Operand mine = Operand.of(bytes.asReadOnlyBuffer().order(ByteOrder.nativeOrder()).asIntBuffer());
            int[] result = new int[count];
            int[] twice = new int[2 * count];
            int[] half = new int[count / 2];
            int[] sum = Arrays.stream(filled(count, 0)).map(each -> 2 * each + 1).toArray();
            int[] all = concatenated(2, each -> filled(count, each));
            int[] parts = concatenated(2,
                    each -> Arrays.copyOfRange(filled(count, each), rank * count / 2, (rank + 1) * count / 2));
            communicator.allReduce(mine, Operand.of(result), ReduceOp.SUM, stream).toCompletableFuture().get();
            assertArrayEquals(sum, result);
            communicator.reduce(mine, Operand.of(result), ReduceOp.SUM, 0);
            communicator.allGather(mine, Operand.of(twice));
            assertArrayEquals(all, twice);
            communicator.reduceScatter(mine, Operand.of(half), ReduceOp.SUM);
            assertArrayEquals(Arrays.copyOfRange(sum, rank * count / 2, (rank + 1) * count / 2), half);
            communicator.gather(mine, Operand.of(twice), 1);
            communicator.scatter(mine, Operand.of(half), 0);
            assertArrayEquals(Arrays.copyOfRange(filled(count, 0), rank * count / 2, (rank + 1) * count / 2), half);
            communicator.allToAll(mine, Operand.of(result));
            assertArrayEquals(parts, result);
            communicator.sendReceive(mine, 1 - rank, Operand.of(result), 1 - rank);
            assertArrayEquals(filled(count, 1 - rank), result);
            communicator.allGatherv(mine, Operand.of(twice), count, count);
            communicator.gatherv(mine, Operand.of(twice), 0, count, count);
            communicator.scatterv(mine, Operand.of(half), 1, count / 2, count / 2);
            long[] halves = {count / 2, count / 2};
            communicator.allToAllv(mine, halves, Operand.of(result), halves);
            assertArrayEquals(parts, result);
            assertArrayEquals(filled(count, rank), ints(bytes));
        });
    }

    private static int[] ints(ByteBuffer bytes) {
        int[] all = new int[bytes.capacity() / 4];
        bytes.asIntBuffer().get(all);
        return all;
    }

    @Test
    void operationsOfAStreamUseOneLargeArrayInTurn() throws Exception {
        EngineGroup.ranks(directory, 2, EngineGroup.settings(), communicator -> {
            long[] values = new long[1 << 20];
            Arrays.fill(values, 1);
            DeviceStream stream = communicator.stream();
            for (int i = 0; i < 5; i++) {
                communicator.allReduce(Operand.of(values), ReduceOp.SUM, stream);
            }
            stream.completion().toCompletableFuture().get();
            assertEquals(32L << 20, Arrays.stream(values).sum());
            communicator.allReduce(Operand.of(values), ReduceFunction.BITWISE_OR);
            assertEquals(32L << 20, Arrays.stream(values).sum());
        });
    }

    /** The sent segment is read-only, and the result is written to the same memory. */
    @ParameterizedTest
    @CsvSource({"8, true", "8, false", "1100000, true", "1100000, false"})
    void aReadOnlyViewOfTheResultCanBeSent(int count, boolean direct) throws Exception {
        EngineGroup.ranks(directory, 2, EngineGroup.settings(), (communicator, stream, arena) -> {
            ByteBuffer bytes = direct ? ByteBuffer.allocateDirect(4 * count) : ByteBuffer.allocate(4 * count);
            bytes.order(ByteOrder.nativeOrder()).asIntBuffer().put(filled(count, communicator.rank()));
            MemorySegment memory = MemorySegment.ofBuffer(bytes);
            communicator
                    .allReduce(Operand.ofHost(memory.asReadOnly(), DataType.INT32),
                            Operand.ofHost(memory, DataType.INT32), ReduceOp.SUM, stream)
                    .toCompletableFuture()
                    .get();
            assertArrayEquals(Arrays.stream(filled(count, 0)).map(each -> 2 * each + 1).toArray(), ints(bytes));
        });
    }

    /** The communicator keeps the kernel of its last operation, but not the arrays of this operation. */
    @ParameterizedTest
    @CsvSource({"shm", "socket"})
    void arraysAreCollectableAfterTheirOperation(String network) throws Exception {
        EngineGroup.ranks(directory, 2, EngineGroup.settings("MILLRACE_NET", network), communicator -> {
            for (WeakReference<int[]> array : used(communicator)) {
                long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(EngineGroup.TIMEOUT_SECONDS / 2);
                while (array.get() != null) {
                    assertTrue(System.nanoTime() < end, "the array is still reachable");
                    System.gc();
                }
            }
            assertEquals(2, communicator.allReduce(1L, ReduceOp.SUM));
        });
    }

    private static List<WeakReference<int[]>> used(Communicator communicator) throws Exception {
        int[] sent = filled(COUNT, 1);
        int[] result = new int[COUNT];
        communicator.allReduce(Operand.of(sent), Operand.of(result), ReduceOp.SUM);
        int[] later = filled(COUNT, 1);
        DeviceStream stream = communicator.stream();
        communicator.allReduce(Operand.of(later), ReduceOp.SUM, stream).toCompletableFuture().get();
        int[] moved = filled(COUNT, 1);
        int peer = 1 - communicator.rank();
        communicator.sendReceive(Operand.of(moved), peer, Operand.of(result), peer);
        return List.of(new WeakReference<>(sent), new WeakReference<>(result), new WeakReference<>(later),
                new WeakReference<>(moved));
    }

    @Test
    void aRangeLeadsToItsPartOfTheHeap() {
        int[] array = {1, 2, 3, 4};
        MemorySegment range = HeapAddress.of(MemorySegment.ofArray(array));
        MemorySegment other = HeapAddress.of(MemorySegment.ofArray(array));
        assertTrue(range.asOverlappingSlice(other).isEmpty());
        HeapAddress.resolve(range.asSlice(4, 8)).fill((byte) 0);
        assertArrayEquals(new int[] {1, 0, 0, 4}, array);
    }
}
