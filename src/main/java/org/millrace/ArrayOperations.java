package org.millrace;

import java.nio.ByteBuffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/**
 * The operations of a {@link Communicator} by Java's arrays and buffers. What stands for elements here, as an
 * {@code Object}, is one of these; {@link java.lang.foreign.MemorySegment#copy MemorySegment.copy} takes arrays in the
 * same way:
 *
 * <ul>
 * <li>{@code float[]}, {@code double[]}, {@code int[]}, {@code long[]}, {@code byte[]}: all elements of it, as
 * {@link DataType#FLOAT32}, {@link DataType#FLOAT64}, {@link DataType#INT32}, {@link DataType#INT64} and
 * {@link DataType#INT8};
 * <li>a {@link FloatBuffer}, {@link DoubleBuffer}, {@link IntBuffer} or {@link LongBuffer}, in the order of this
 * machine: its elements from position to limit, neither of which is moved; a {@link ByteBuffer} of any order where
 * nothing is reduced, as {@link DataType#INT8};
 * <li>an {@link Operand}: of another type, of a part of an array, or memory of the device on one of the two sides.
 * </ul>
 *
 * <p>
 * Anything else is an {@link IllegalArgumentException} that says what to take. All that is said of
 * {@link TypedOperations} holds, which has the same operations by operands alone: when arrays are read and written,
 * what a stage is, and what is thrown.
 */
public sealed interface ArrayOperations permits Communicator {

    /**
     * Reduces all ranks' elements in place.
     *
     * @param values this rank's elements, and then the result; as many on each rank
     * @param op     how elements are combined
     * @param stream where the operation is enqueued
     * @return complete when the operation is, and the result is there; exceptionally if it failed
     */
    default CompletionStage<Void> allReduce(Object values, ReduceOp op, Stream stream) {
        return ((Communicator) this).allReduce(operand(Operation.ALL_REDUCE, "values", values), op, stream);
    }

    /**
     * Reduces all ranks' elements, as many of each, and leaves the result with every rank.
     *
     * @param send    this rank's elements
     * @param receive room for the result, as large
     * @param op      how elements are combined
     * @param stream  where the operation is enqueued
     * @return complete when the operation is, and the result is there; exceptionally if it failed
     */
    default CompletionStage<Void> allReduce(Object send, Object receive, ReduceOp op, Stream stream) {
        return ((Communicator) this).allReduce(operand(Operation.ALL_REDUCE, "send", send),
                operand(Operation.ALL_REDUCE, "receive", receive), op, stream);
    }

    /**
     * Gives every rank all ranks' elements, as many of each.
     *
     * @param send    this rank's elements
     * @param receive room for {@code size()} times as many, ordered by rank
     * @param stream  where the operation is enqueued
     * @return complete when the operation is, and the result is there; exceptionally if it failed
     */
    default CompletionStage<Void> allGather(Object send, Object receive, Stream stream) {
        return ((Communicator) this).allGather(operand(Operation.ALL_GATHER, "send", send),
                operand(Operation.ALL_GATHER, "receive", receive), stream);
    }

    /**
     * Reduces all ranks' elements and leaves each rank its share of the result.
     *
     * @param send    {@code size()} parts
     * @param receive room for one part
     * @param op      how elements are combined
     * @param stream  where the operation is enqueued
     * @return complete when the operation is, and the result is there; exceptionally if it failed
     */
    default CompletionStage<Void> reduceScatter(Object send, Object receive, ReduceOp op, Stream stream) {
        return ((Communicator) this).reduceScatter(operand(Operation.REDUCE_SCATTER, "send", send),
                operand(Operation.REDUCE_SCATTER, "receive", receive), op, stream);
    }

    /**
     * Gives every rank one rank's elements.
     *
     * @param values the elements at the root, and room for as many elsewhere
     * @param root   the rank whose elements they are
     * @param stream where the operation is enqueued
     * @return complete when the operation is, and the result is there; exceptionally if it failed
     */
    default CompletionStage<Void> broadcast(Object values, int root, Stream stream) {
        return ((Communicator) this).broadcast(operand(Operation.BROADCAST, "values", values), root, stream);
    }

    /**
     * Reduces all ranks' elements and leaves the result with one of them.
     *
     * @param send    this rank's elements
     * @param receive at the root room for the result, the same array or buffer for an operation in place; not looked at
     *                elsewhere, and may be null there
     * @param op      how elements are combined
     * @param root    the rank that gets the result
     * @param stream  where the operation is enqueued
     * @return complete when the operation is, and the result is there; exceptionally if it failed
     */
    default CompletionStage<Void> reduce(Object send, @Nullable Object receive, ReduceOp op, int root, Stream stream) {
        return ((Communicator) this).reduce(operand(Operation.REDUCE, "send", send),
                operandAt(root, Operation.REDUCE, "receive", receive), op, root, stream);
    }

    /**
     * Gives one rank all ranks' elements, as many of each.
     *
     * @param send    this rank's elements
     * @param receive at the root room for {@code size()} times as many, ordered by rank; not looked at elsewhere, and
     *                may be null there
     * @param root    the rank that gets the result
     * @param stream  where the operation is enqueued
     * @return complete when the operation is, and the result is there; exceptionally if it failed
     */
    default CompletionStage<Void> gather(Object send, @Nullable Object receive, int root, Stream stream) {
        return ((Communicator) this).gather(operand(Operation.GATHER, "send", send),
                operandAt(root, Operation.GATHER, "receive", receive), root, stream);
    }

    /**
     * Gives every rank its part of one rank's elements.
     *
     * @param send    at the root {@code size()} parts, ordered by rank; not looked at elsewhere, and may be null there
     * @param receive room for one part
     * @param root    the rank that sends
     * @param stream  where the operation is enqueued
     * @return complete when the operation is, and the result is there; exceptionally if it failed
     */
    default CompletionStage<Void> scatter(@Nullable Object send, Object receive, int root, Stream stream) {
        return ((Communicator) this).scatter(operandAt(root, Operation.SCATTER, "send", send),
                operand(Operation.SCATTER, "receive", receive), root, stream);
    }

    /**
     * Exchanges elements between all ranks: part {@code j} of rank {@code i} becomes part {@code i} of rank {@code j}.
     *
     * @param send    {@code size()} parts, ordered by the rank that gets them
     * @param receive room for as many, ordered by the rank they come from; apart from {@code send}
     * @param stream  where the operation is enqueued
     * @return complete when the operation is, and the result is there; exceptionally if it failed
     */
    default CompletionStage<Void> allToAll(Object send, Object receive, Stream stream) {
        return ((Communicator) this).allToAll(operand(Operation.ALL_TO_ALL, "send", send),
                operand(Operation.ALL_TO_ALL, "receive", receive), stream);
    }

    /**
     * Sends elements to one rank, which {@linkplain #receive receives} as many.
     *
     * @param values the elements
     * @param peer   the rank that receives them
     * @param stream where the operation is enqueued
     * @return complete when the operation is, and the array may be changed; exceptionally if it failed
     */
    default CompletionStage<Void> send(Object values, int peer, Stream stream) {
        return ((Communicator) this).send(operand(Operation.SEND_RECEIVE, "values", values), peer, stream);
    }

    /**
     * Receives elements from one rank, which {@linkplain #send sends} as many.
     *
     * @param values room for the elements
     * @param peer   the rank that sends them
     * @param stream where the operation is enqueued
     * @return complete when the operation is, and the elements are there; exceptionally if it failed
     */
    default CompletionStage<Void> receive(Object values, int peer, Stream stream) {
        return ((Communicator) this).receive(operand(Operation.SEND_RECEIVE, "values", values), peer, stream);
    }

    /** What only the root has to give. */
    private @Nullable Operand operandAt(int root, Operation operation, String role, @Nullable Object elements) {
        return ((Communicator) this).rank() == root ? operand(operation, role, elements) : null;
    }

    /**
     * {@return the operand that an array or a buffer is}
     *
     * @throws NullPointerException     if there is none, with its name
     * @throws IllegalArgumentException if it does not say what its elements are
     */
    private static Operand operand(Operation operation, String role, @Nullable Object elements) {
        return switch (elements) {
            case null -> OperandCall.required(operation, role, null);
            case Operand operand -> operand;
            case float[] array -> Operand.of(array);
            case double[] array -> Operand.of(array);
            case int[] array -> Operand.of(array);
            case long[] array -> Operand.of(array);
            case byte[] array -> Operand.of(array);
            case FloatBuffer buffer -> Operand.of(buffer, buffer.order(), DataType.FLOAT32);
            case DoubleBuffer buffer -> Operand.of(buffer, buffer.order(), DataType.FLOAT64);
            case IntBuffer buffer -> Operand.of(buffer, buffer.order(), DataType.INT32);
            case LongBuffer buffer -> Operand.of(buffer, buffer.order(), DataType.INT64);
            case ByteBuffer buffer when !operation.reduces() -> Operand.of(buffer, DataType.INT8);
            default -> throw new IllegalArgumentException(operation.label() + ": " + role + " is a "
                    + elements.getClass().getTypeName() + ", which does not say what its elements are: take a float[],"
                    + " double[], int[], long[] or byte[], a FloatBuffer, DoubleBuffer, IntBuffer or LongBuffer, or,"
                    + " for memory and all other types, Operand.of(memory, type)");
        };
    }
}
