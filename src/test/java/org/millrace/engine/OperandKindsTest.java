package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Array;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.Operand;
import org.millrace.ReduceOp;

/**
 * Every operation with every kind of array and buffer that {@link ArrayOperations} accepts, and the errors for all
 * other kinds.
 */
class OperandKindsTest {

    @TempDir
    Path directory;

    private interface Body {
        void run(Communicator communicator, DeviceStream stream) throws Exception;
    }

    private void ranks(int ranks, Body body) throws InterruptedException {
        EngineGroup.ranks(directory, ranks, EngineGroup.settings(), communicator -> {
            try (DeviceStream stream = communicator.device().newStream()) {
                body.run(communicator, stream);
            }
        });
    }

    /**
     * One kind of operand.
     *
     * @param component element type of the array that contains the operand
     * @param border    number of elements of the array before and after the operand
     * @param view      function that returns the operand of a given array
     */
    private record Kind(Class<?> component, int border, UnaryOperator<Object> view) {

        Values of(int... values) {
            Object array = Array.newInstance(component, values.length + 2 * border);
            for (int i = 0; i < values.length; i++) {
                Array.setByte(array, border + i, (byte) values[i]); // every element type can hold a byte
            }
            Object viewed = view.apply(array);
            return new Values(array, border, viewed, operand(viewed), toString());
        }

        @Override
        public String toString() {
            return view.apply(Array.newInstance(component, 2)).getClass().getSimpleName();
        }
    }

    private record Values(Object array, int border, Object view, Operand elements, String kind) {

        void mustBe(int... expected) {
            int[] whole = new int[Array.getLength(array)];
            System.arraycopy(expected, 0, whole, border, expected.length);
            assertArrayEquals(whole,
                    IntStream.range(0, whole.length).map(i -> (int) Array.getDouble(array, i)).toArray(), kind);
            if (view instanceof Buffer buffer) {
                assertEquals(List.of(1, 1 + expected.length), List.of(buffer.position(), buffer.limit()));
            }
        }
    }

    private static Kind array(Class<?> component) {
        return new Kind(component, 0, UnaryOperator.identity());
    }

    private static Kind buffer(Class<?> component, UnaryOperator<Object> wrap) {
        return new Kind(component, 1, array -> inner((Buffer) wrap.apply(array)));
    }

    private static Buffer inner(Buffer buffer) {
        return buffer.position(1).limit(buffer.capacity() - 1);
    }

    private static Operand operand(Object elements) {
        return switch (elements) {
            case float[] array -> Operand.of(array);
            case double[] array -> Operand.of(array);
            case int[] array -> Operand.of(array);
            case long[] array -> Operand.of(array);
            case byte[] array -> Operand.of(array);
            case FloatBuffer buffer -> Operand.of(buffer);
            case DoubleBuffer buffer -> Operand.of(buffer);
            case IntBuffer buffer -> Operand.of(buffer);
            case LongBuffer buffer -> Operand.of(buffer);
            default -> Operand.of((ByteBuffer) elements, DataType.INT8);
        };
    }

    private static List<Kind> kinds() {
        return List.of(array(float.class), array(double.class), array(int.class), array(long.class), array(byte.class),
                buffer(float.class, array -> FloatBuffer.wrap((float[]) array)),
                buffer(double.class, array -> DoubleBuffer.wrap((double[]) array)),
                buffer(int.class, array -> IntBuffer.wrap((int[]) array)),
                buffer(long.class, array -> LongBuffer.wrap((long[]) array)),
                buffer(byte.class, array -> ByteBuffer.wrap((byte[]) array)));
    }

    @Test
    void everyOperationByEveryKind() throws Exception {
        ranks(3, (communicator, stream) -> {
            for (Kind kind : kinds()) {
                everyOperation(kind, communicator, stream);
            }
        });
    }

    private static void everyOperation(Kind kind, Communicator communicator, DeviceStream stream) throws Exception {
        int rank = communicator.rank();
        Values mine = kind.of(10 * rank, 10 * rank + 1);
        Values six = kind.of(rank, rank + 1, rank + 2, rank + 3, rank + 4, rank + 5);
        Values all = kind.of(new int[6]);
        Values told = kind.of(rank, rank);
        Values gathered = kind.of(new int[6]);
        Values scattered = kind.of(0, 0);
        Values exchanged = kind.of(new int[6]);
        Values next = kind.of(0, 0);
        Values added = kind.of(-1 - rank, 1); // with a wrong element type, these bits would be other numbers
        Values sum = kind.of(0, 0);
        Values part = kind.of(0, 0);
        Values atRoot = kind.of(0, 0);
        communicator.allGather(mine.elements, all.elements, stream);
        communicator.broadcast(told.elements, 2, stream);
        communicator.gather(mine.elements, rank == 2 ? gathered.elements : null, 2, stream);
        communicator.scatter(rank == 0 ? all.elements : null, scattered.elements, 0, stream);
        communicator.allToAll(six.elements, exchanged.elements, stream);
        communicator.group(() -> {
            communicator.send(mine.elements, (rank + 1) % 3, stream);
            communicator.receive(next.elements, (rank + 2) % 3, stream);
        });
        communicator.allReduce(added.elements, ReduceOp.SUM, stream);
        communicator.allReduce(mine.elements, sum.elements, ReduceOp.SUM, stream);
        communicator.reduceScatter(six.elements, part.elements, ReduceOp.SUM, stream);
        communicator.reduce(mine.elements, rank == 1 ? atRoot.elements : null, ReduceOp.MAX, 1, stream);
        stream.completion().toCompletableFuture().get(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS);
        all.mustBe(0, 1, 10, 11, 20, 21);
        told.mustBe(2, 2);
        gathered.mustBe(rank == 2 ? new int[] {0, 1, 10, 11, 20, 21} : new int[6]);
        scattered.mustBe(10 * rank, 10 * rank + 1);
        exchanged.mustBe(2 * rank, 2 * rank + 1, 2 * rank + 1, 2 * rank + 2, 2 * rank + 2, 2 * rank + 3);
        next.mustBe(10 * ((rank + 2) % 3), 10 * ((rank + 2) % 3) + 1);
        added.mustBe(-6, 3);
        sum.mustBe(30, 33);
        part.mustBe(3 + 6 * rank, 6 + 6 * rank);
        atRoot.mustBe(rank == 1 ? new int[] {20, 21} : new int[2]);
        mine.mustBe(10 * rank, 10 * rank + 1);
    }

    @Test
    void aBufferOfAnotherOrderIsRefused() {
        FloatBuffer other = ByteBuffer.allocate(8).order(ByteOrder.BIG_ENDIAN).asFloatBuffer();
        String said = assertThrows(IllegalArgumentException.class, () -> Operand.of(other)).getMessage();
        assertTrue(said.contains("call order(ByteOrder.nativeOrder()) of its ByteBuffer"), said);
    }
}
