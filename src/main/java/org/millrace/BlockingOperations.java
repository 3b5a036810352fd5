package org.millrace;

import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.function.BinaryOperator;
import org.jspecify.annotations.Nullable;
import org.millrace.operation.Required;

/**
 * Operations of a {@link Communicator} that return when they are complete, and therefore need no stream. They are the
 * operations of {@link TypedOperations}, and operations of MPI that NCCL lacks. The operations of MPI are composed of
 * operations of {@link TypedOperations}.
 *
 * {@snippet :
 * communicator.allReduce(Operand.of(gradients), ReduceOp.SUM);
 * double loss = communicator.allReduce(lossHere, ReduceOp.AVG);
 * String plan = communicator.broadcast(rank == 0 ? "begin" : null, 0, Serializer.STRING);
 * }
 *
 * <p>
 * {@link Operand} creates operands from arrays, ranges of arrays, buffers and memory. A failure is thrown as
 * {@link CommunicatorException} or one of its subclasses. Operations need a stream if they overlap, or if they depend
 * on each other in a group. For such operations, use the methods of {@link TypedOperations}, which have the same names,
 * take a stream, and return a stage.
 *
 * <p>
 * An interrupt of the waiting thread causes an {@link OperationInterruptedException}. A single operation then continues
 * without the thread, and the communicator stays usable. An interrupt aborts the communicator if the method consists of
 * several operations and the first operation has begun. If the thread is already interrupted at the call, no operation
 * starts.
 */
sealed interface BlockingOperations permits Communicator {

    /**
     * Reduces all ranks' elements in place.
     *
     * @see TypedOperations#allReduce(Operand, ReduceOp, DeviceStream)
     */
    default void allReduce(Operand values, ReduceOp op) {
        Blocking.run(this, stream -> ((Communicator) this).allReduce(values, op, stream));
    }

    /**
     * Reduces all ranks' elements. All ranks pass the same number of elements.
     *
     * @see TypedOperations#allReduce(Operand, Operand, ReduceOp, DeviceStream)
     */
    default void allReduce(Operand send, Operand receive, ReduceOp op) {
        Blocking.run(this, stream -> ((Communicator) this).allReduce(send, receive, op, stream));
    }

    /**
     * Gathers all ranks' elements on every rank, ordered by rank.
     *
     * @see TypedOperations#allGather(Operand, Operand, DeviceStream)
     */
    default void allGather(Operand send, Operand receive) {
        Blocking.run(this, stream -> ((Communicator) this).allGather(send, receive, stream));
    }

    /**
     * Reduces all ranks' elements, and stores on each rank its part of the result.
     *
     * @see TypedOperations#reduceScatter(Operand, Operand, ReduceOp, DeviceStream)
     */
    default void reduceScatter(Operand send, Operand receive, ReduceOp op) {
        Blocking.run(this, stream -> ((Communicator) this).reduceScatter(send, receive, op, stream));
    }

    /**
     * Sends the root's elements to every rank.
     *
     * @see TypedOperations#broadcast(Operand, int, DeviceStream)
     */
    default void broadcast(Operand values, int root) {
        Blocking.run(this, stream -> ((Communicator) this).broadcast(values, root, stream));
    }

    /**
     * Reduces all ranks' elements and stores the result on the root; {@code receive} may be null on other ranks.
     *
     * @see TypedOperations#reduce(Operand, Operand, ReduceOp, int, DeviceStream)
     */
    default void reduce(Operand send, @Nullable Operand receive, ReduceOp op, int root) {
        Blocking.run(this, stream -> ((Communicator) this).reduce(send, receive, op, root, stream));
    }

    /**
     * Gathers all ranks' elements on the root, ordered by rank; {@code receive} may be null on other ranks.
     *
     * @see TypedOperations#gather(Operand, Operand, int, DeviceStream)
     */
    default void gather(Operand send, @Nullable Operand receive, int root) {
        Blocking.run(this, stream -> ((Communicator) this).gather(send, receive, root, stream));
    }

    /**
     * Sends every rank its part of the root's elements; {@code send} may be null on other ranks.
     *
     * @see TypedOperations#scatter(Operand, Operand, int, DeviceStream)
     */
    default void scatter(@Nullable Operand send, Operand receive, int root) {
        Blocking.run(this, stream -> ((Communicator) this).scatter(send, receive, root, stream));
    }

    /**
     * Exchanges parts between all ranks.
     *
     * @see TypedOperations#allToAll(Operand, Operand, DeviceStream)
     */
    default void allToAll(Operand send, Operand receive) {
        Blocking.run(this, stream -> ((Communicator) this).allToAll(send, receive, stream));
    }

    /**
     * Sends elements to one rank. Returns when that rank has received them.
     *
     * @see TypedOperations#send(Operand, int, DeviceStream)
     */
    default void send(Operand values, int peer) {
        Blocking.run(this, stream -> ((Communicator) this).send(values, peer, stream));
    }

    /**
     * Receives elements from one rank.
     *
     * @see TypedOperations#receive(Operand, int, DeviceStream)
     */
    default void receive(Operand values, int peer) {
        Blocking.run(this, stream -> ((Communicator) this).receive(values, peer, stream));
    }

    /** Sends elements to one rank and receives elements from the same or another rank, at the same time. */
    default void sendReceive(Operand send, int to, Operand receive, int from) {
        Blocking.requireRank((Communicator) this, "sendReceive, to", to);
        Blocking.requireRank((Communicator) this, "sendReceive, from", from);
        Required.argument("sendReceive", "operand send", send);
        Required.argument("sendReceive", "operand receive", receive);
        OperandCall.check((Communicator) this, Operation.SEND_RECEIVE, "send", send, false);
        OperandCall.check((Communicator) this, Operation.SEND_RECEIVE, "receive", receive, true);
        Blocking.run(this, stream -> ((Communicator) this).group(() -> {
            ((Communicator) this).send(send, to, stream);
            ((Communicator) this).receive(receive, from, stream);
        }));
    }

    /** {@return the reduction of one number from each rank} */
    default double allReduce(double value, ReduceOp op) {
        double[] values = {value};
        allReduce(Operand.of(values), op);
        return values[0];
    }

    /** {@return the reduction of one number from each rank} */
    default long allReduce(long value, ReduceOp op) {
        long[] values = {value};
        allReduce(Operand.of(values), op);
        return values[0];
    }

    /**
     * Reduces all ranks' elements in place, and returns for each element the rank that had the resulting value.
     *
     * @param values before the call this rank's elements, in host memory; afterwards the result
     * @param op     {@link ReduceOp#MIN} or {@link ReduceOp#MAX}
     * @return for each element the first rank with the resulting value; -1 if no rank had exactly the resulting value,
     *         as for a NaN
     */
    default int[] allReduceWithRank(Operand values, ReduceOp op) {
        return Blocking.composed(this, () -> Blocking.withRank((Communicator) this, values, op));
    }

    /**
     * Reduces all ranks' elements in place by a function of the program. The function runs on the host. The operation
     * consists of an all-to-all and an all-gather.
     *
     * @param values   before the call this rank's elements, in host memory, the same number on all ranks; afterwards
     *                 the result
     * @param function the reduction, the same on all ranks
     * @throws IllegalArgumentException if the function does not accept the element type, or the elements lie on a GPU
     */
    default void allReduce(Operand values, ReduceFunction function) {
        HostReduction reduction = new HostReduction((Communicator) this, "allReduce", values, function);
        Blocking.composed(this, reduction::allReduce);
    }

    /**
     * Replaces each rank's elements by their combination with the elements of all earlier ranks, in rank order. The
     * operation consists of two all-to-alls.
     */
    default void scan(Operand values, ReduceFunction function) {
        HostReduction reduction = new HostReduction((Communicator) this, "scan", values, function);
        Blocking.composed(this, () -> reduction.scan(true));
    }

    /**
     * Replaces each rank's elements by the combination of the elements of all earlier ranks, in rank order. The rank's
     * own elements are not part of its result. Rank 0 keeps its elements. The operation consists of two all-to-alls.
     */
    default void exscan(Operand values, ReduceFunction function) {
        HostReduction reduction = new HostReduction((Communicator) this, "exscan", values, function);
        Blocking.composed(this, () -> reduction.scan(false));
    }

    /** Waits until all ranks have called this method. The barrier is an all-reduce of one byte. */
    default void barrier() {
        allReduce(Operand.of(new byte[1]), ReduceOp.MAX);
    }

    /**
     * Gathers all ranks' elements on every rank. The number of elements may differ between ranks. The operation
     * consists of sends and receives between all ranks.
     *
     * @param send    this rank's elements
     * @param receive room for all elements, ordered by rank
     * @param counts  number of elements of each rank, the same on all ranks
     */
    default void allGatherv(Operand send, Operand receive, long... counts) {
        Blocking.run(this, stream -> ((Communicator) this).allGatherv(send, receive, stream, counts));
    }

    /**
     * Gathers like {@link #allGatherv}, but only the root receives the elements; {@code receive} may be null on other
     * ranks.
     */
    default void gatherv(Operand send, @Nullable Operand receive, int root, long... counts) {
        Blocking.run(this, stream -> ((Communicator) this).gatherv(send, receive, root, stream, counts));
    }

    /**
     * Sends every rank its part of the root's elements. The parts may differ in size.
     *
     * @param send    at the root all parts, ordered by rank; may be null on other ranks
     * @param receive room for this rank's part
     * @param root    the rank that sends
     * @param counts  number of elements for each rank
     */
    default void scatterv(@Nullable Operand send, Operand receive, int root, long... counts) {
        Blocking.run(this, stream -> ((Communicator) this).scatterv(send, receive, root, stream, counts));
    }

    /**
     * Exchanges parts of any sizes between all ranks.
     *
     * @param send          a part for each rank, ordered by rank
     * @param sendCounts    number of elements that this rank sends to each rank
     * @param receive       room for a part from each rank, ordered by rank
     * @param receiveCounts number of elements that each rank sends to this rank
     */
    default void allToAllv(Operand send, long[] sendCounts, Operand receive, long[] receiveCounts) {
        Blocking.run(this, stream -> ((Communicator) this).allToAllv(send, sendCounts, receive, receiveCounts, stream));
    }

    /**
     * {@return the root's object} The operation consists of two broadcasts: first the number of bytes, then the bytes.
     *
     * @param object     the root's object; ignored on other ranks
     * @param root       the rank that owns the object
     * @param serializer the serializer of the object, the same on all ranks
     */
    default <T> T broadcast(@Nullable T object, int root, Serializer<T> serializer) {
        Blocking.requireRank((Communicator) this, "broadcast, root", root);
        Required.argument("broadcast", "serializer", serializer);
        boolean isRoot = ((Communicator) this).rank() == root;
        byte[] mine = isRoot ? Blocking.serialized("broadcast", object, serializer) : new byte[0];
        return serializer.deserialize(Blocking.composed(this, () -> {
            int[] length = {mine.length};
            broadcast(Operand.of(length), root);
            byte[] bytes = isRoot ? mine : new byte[Blocking.length(length[0])];
            broadcast(Operand.of(bytes), root);
            return bytes;
        }));
    }

    /**
     * {@return the objects of all ranks, ordered by rank} The operation consists of an all-gather of the byte counts,
     * and sends and receives of the bytes between all ranks.
     */
    default <T> List<T> allGather(T object, Serializer<T> serializer) {
        return Blocking.gather(this, "allGather", object, _ -> true, _ -> true, serializer);
    }

    /**
     * {@return on the root the objects of all ranks, ordered by rank; on other ranks an empty list} The operation
     * consists of an all-gather of the byte counts, and sends of the bytes to the root.
     */
    default <T> List<T> gather(T object, int root, Serializer<T> serializer) {
        return Blocking.gather(this, "gather", object, root, serializer);
    }

    /**
     * {@return the object for this rank in the root's list} The operation consists of a scatter of the byte counts, and
     * sends of the bytes from the root to all ranks.
     *
     * @param objects    on the root one object for each rank; may be null on other ranks
     * @param root       the rank that owns the objects
     * @param serializer the serializer of the objects, the same on all ranks
     */
    default <T> T scatter(@Nullable List<T> objects, int root, Serializer<T> serializer) {
        return Blocking.composed(this, () -> Blocking.scatter((Communicator) this, objects, root, serializer));
    }

    /** Sends an object: first the number of its bytes, then the bytes. */
    default <T> void send(T object, int peer, Serializer<T> serializer) {
        Blocking.requireRank((Communicator) this, "send, peer", peer);
        byte[] bytes = Blocking.serialized("send", object, serializer);
        Blocking.composed(this, () -> {
            send(Operand.of(new int[] {bytes.length}), peer);
            send(Operand.of(bytes), peer);
            return null;
        });
    }

    /** {@return the object that another rank sends by {@link #send(Object, int, Serializer)}} */
    default <T> T receive(int peer, Serializer<T> serializer) {
        Blocking.requireRank((Communicator) this, "receive, peer", peer);
        Required.argument("receive", "serializer", serializer);
        return serializer.deserialize(Blocking.composed(this, () -> {
            int[] length = new int[1];
            receive(Operand.of(length), peer);
            byte[] bytes = new byte[Blocking.length(length[0])];
            receive(Operand.of(bytes), peer);
            return bytes;
        }));
    }

    /**
     * {@return the combination of all ranks' objects in rank order, the same on every rank} The operation uses
     * {@link #allGather(Object, Serializer)}.
     */
    default <T> T allReduce(T object, BinaryOperator<T> function, Serializer<T> serializer) {
        Required.argument("allReduce", "function", function);
        return Blocking.gather(this, "allReduce", object, _ -> true, _ -> true, serializer)
                .stream()
                .reduce(function)
                .orElseThrow();
    }

    /**
     * {@return on the root the combination of all ranks' objects in rank order; empty on other ranks} The operation
     * uses {@link #gather(Object, int, Serializer)}.
     */
    default <T> Optional<T> reduce(T object, BinaryOperator<T> function, int root, Serializer<T> serializer) {
        Required.argument("reduce", "function", function);
        return Blocking.gather(this, "reduce", object, root, serializer).stream().reduce(function);
    }

    /**
     * {@return the combination of this rank's object with the objects of all earlier ranks, in rank order} The
     * operation consists of an all-gather of the byte counts, and sends of the bytes to all later ranks.
     */
    default <T> T scan(T object, BinaryOperator<T> function, Serializer<T> serializer) {
        Required.argument("scan", "function", function);
        return Blocking.earlier(this, "scan", object, serializer).stream().reduce(function).orElseThrow();
    }

    /**
     * {@return the combination of the objects of all earlier ranks, in rank order; empty on rank 0} Unlike the result
     * of {@link #scan(Object, BinaryOperator, Serializer)}, the result does not contain this rank's object.
     */
    default <T> Optional<T> exscan(T object, BinaryOperator<T> function, Serializer<T> serializer) {
        Required.argument("exscan", "function", function);
        List<T> objects = Blocking.earlier(this, "exscan", object, serializer);
        return objects.subList(0, objects.size() - 1).stream().reduce(function);
    }

    /**
     * {@return the objects that all ranks have for this rank, ordered by rank} The operation consists of an all-to-all
     * of the byte counts, and sends and receives of the bytes between all ranks.
     *
     * @param objects    one object for each rank
     * @param serializer the serializer of the objects, the same on all ranks
     */
    default <T> List<T> allToAll(List<T> objects, Serializer<T> serializer) {
        List<byte[]> mine = Blocking.serialized((Communicator) this, "allToAll", objects, serializer);
        return Blocking.composed(this, () -> Blocking.allToAll((Communicator) this, mine, serializer));
    }

    /**
     * Waits until all ranks have called this method, and names each rank that does not call it in time. The ranks
     * exchange messages that do not pass through streams. Therefore work in their streams does not delay the barrier.
     * This barrier is slower than {@link #barrier()}.
     *
     * <p>
     * A missed deadline ends the group: the communicator has failed on all ranks, and can only be closed or
     * {@linkplain Communicator#shrink(Duration) shrunk}. An interrupt does not end the group: this rank counts as a
     * rank that has called the barrier.
     *
     * @param deadline time to wait for the other ranks, 0 or more
     * @throws DeadlineException             if a rank did not call in time; the message names all missing ranks
     * @throws OperationInterruptedException if the thread was interrupted
     * @throws MillraceException             if the communicator has failed or is closed, or its device cannot name
     *                                       missing ranks
     */
    default void barrier(Duration deadline) {
        throw new MillraceException(
                ((Communicator) this).device().name() + " cannot name the missing ranks: use barrier()");
    }

    /** {@return the maximum time that an operation without a stream may take, even if the device reports progress} */
    default Duration patience() {
        return Duration.ofMinutes(30);
    }
}
