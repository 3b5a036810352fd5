package org.millrace;

import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;
import org.millrace.operation.Required;

/**
 * Operations of a {@link Communicator} with {@link Operand} parameters, which have a type and a count. Each operation
 * returns a stage, so that a program can continue when the operation is complete, or wait for it:
 *
 * {@snippet :
 * communicator.allReduce(Operand.of(gradients), ReduceOp.SUM, stream).toCompletableFuture().get(30, TimeUnit.SECONDS);
 * }
 *
 * <p>
 * Arrays and other host operands are copied in the order of the stream. They are read when the stream reaches the
 * operation. They hold the result when the stage is complete, or when {@link DeviceStream#synchronize} has returned. In
 * a group, they hold the result after the whole group is complete. In a {@link Plan}, operands must lie in memory that
 * the device uses in place.
 *
 * <p>
 * A call throws an {@link IllegalArgumentException}, and sends nothing, if the operands differ in type or their sizes
 * do not fit. A call also throws this exception for the reasons listed at {@link Communicator#allReduce}. A call throws
 * a {@link MillraceException} if the communicator has failed or is closed, or its device lacks the operation. A failure
 * of the operation completes the stage exceptionally.
 */
sealed interface TypedOperations permits Communicator {

    /**
     * Reduces all ranks' elements and stores the result on every rank. All ranks pass the same number of elements.
     *
     * @param send    this rank's elements; not changed, unless {@code receive} is the same operand
     * @param receive room for the result, of the same size; the same operand for an operation in place
     * @param op      the reduction
     * @param stream  stream of the operation
     * @return a stage that completes with the operation, when the result is available; exceptionally on failure
     */
    default CompletionStage<Void> allReduce(Operand send, Operand receive, ReduceOp op, DeviceStream stream) {
        return OperandCall.collective(this, Operation.ALL_REDUCE, send, receive, 0, stream,
                (self, from, to, count, type) -> self.allReduce(from, to, count, type, op, stream));
    }

    /**
     * Reduces all ranks' elements in place.
     *
     * @param values before the call this rank's elements; afterwards the result
     * @param op     the reduction
     * @param stream stream of the operation
     * @return a stage that completes with the operation, when the result is available; exceptionally on failure
     */
    default CompletionStage<Void> allReduce(Operand values, ReduceOp op, DeviceStream stream) {
        return allReduce(values, values, op, stream);
    }

    /**
     * Gathers all ranks' elements on every rank. All ranks pass the same number of elements.
     *
     * @param send    this rank's elements; for an operation in place, part number {@code rank()} of {@code receive}
     * @param receive room for {@code size()} times as many elements, ordered by rank
     * @param stream  stream of the operation
     * @return a stage that completes with the operation, when the result is available; exceptionally on failure
     */
    default CompletionStage<Void> allGather(Operand send, Operand receive, DeviceStream stream) {
        return OperandCall.collective(this, Operation.ALL_GATHER, send, receive, 0, stream,
                (self, from, to, count, type) -> self.allGather(from, to, count, type, stream));
    }

    /**
     * Reduces all ranks' elements and stores on each rank its part of the result.
     *
     * @param send    {@code size()} parts; not changed, unless {@code receive} lies in this operand
     * @param receive room for one part; for an operation in place, part number {@code rank()} of {@code send}
     * @param op      the reduction
     * @param stream  stream of the operation
     * @return a stage that completes with the operation, when the result is available; exceptionally on failure
     */
    default CompletionStage<Void> reduceScatter(Operand send, Operand receive, ReduceOp op, DeviceStream stream) {
        return OperandCall.collective(this, Operation.REDUCE_SCATTER, send, receive, 0, stream,
                (self, from, to, count, type) -> self.reduceScatter(from, to, count, type, op, stream));
    }

    /**
     * Sends one rank's elements to every rank.
     *
     * @param values at the root the elements; on other ranks room for the same number of elements
     * @param root   the rank that owns the elements
     * @param stream stream of the operation
     * @return a stage that completes with the operation, when the result is available; exceptionally on failure
     */
    default CompletionStage<Void> broadcast(Operand values, int root, DeviceStream stream) {
        Required.argument(Operation.BROADCAST.label(), "operand values", values);
        return OperandCall.collective(this, Operation.BROADCAST, values, values, root, stream,
                (self, from, to, count, type) -> self.broadcast(from, to, count, type, root, stream));
    }

    /**
     * Reduces all ranks' elements and stores the result on one rank.
     *
     * @param send    this rank's elements
     * @param receive at the root room for the result, or the same operand as {@code send} for an operation in place;
     *                ignored on other ranks, where it may be null
     * @param op      the reduction
     * @param root    the rank of the result
     * @param stream  stream of the operation
     * @return a stage that completes with the operation, when the result is available; exceptionally on failure
     */
    default CompletionStage<Void> reduce(Operand send, @Nullable Operand receive, ReduceOp op, int root,
            DeviceStream stream) {
        return OperandCall.collective(this, Operation.REDUCE, send, receive, root, stream,
                (self, from, to, count, type) -> self.reduce(from, to, count, type, op, root, stream));
    }

    /**
     * Gathers all ranks' elements on one rank. All ranks pass the same number of elements.
     *
     * @param send    this rank's elements
     * @param receive at the root room for {@code size()} times as many elements, ordered by rank; ignored on other
     *                ranks, where it may be null
     * @param root    the rank of the result
     * @param stream  stream of the operation
     * @return a stage that completes with the operation, when the result is available; exceptionally on failure
     */
    default CompletionStage<Void> gather(Operand send, @Nullable Operand receive, int root, DeviceStream stream) {
        return OperandCall.collective(this, Operation.GATHER, send, receive, root, stream,
                (self, from, to, count, type) -> self.gather(from, to, count, type, root, stream));
    }

    /**
     * Sends every rank its part of one rank's elements.
     *
     * @param send    at the root {@code size()} parts, ordered by rank; ignored on other ranks, where it may be null
     * @param receive room for one part
     * @param root    the rank that sends
     * @param stream  stream of the operation
     * @return a stage that completes with the operation, when the result is available; exceptionally on failure
     */
    default CompletionStage<Void> scatter(@Nullable Operand send, Operand receive, int root, DeviceStream stream) {
        return OperandCall.collective(this, Operation.SCATTER, send, receive, root, stream,
                (self, from, to, count, type) -> self.scatter(from, to, count, type, root, stream));
    }

    /**
     * Exchanges elements between all ranks: part {@code j} of rank {@code i} becomes part {@code i} of rank {@code j}.
     *
     * @param send    {@code size()} parts, ordered by receiving rank
     * @param receive room for {@code size()} parts, ordered by sending rank; must not overlap {@code send}
     * @param stream  stream of the operation
     * @return a stage that completes with the operation, when the result is available; exceptionally on failure
     */
    default CompletionStage<Void> allToAll(Operand send, Operand receive, DeviceStream stream) {
        return OperandCall.collective(this, Operation.ALL_TO_ALL, send, receive, 0, stream,
                (self, from, to, count, type) -> self.allToAll(from, to, count, type, stream));
    }

    /**
     * Sends elements to one rank. That rank {@linkplain #receive receives} the same number of elements.
     *
     * @param values the elements
     * @param peer   the rank that receives the elements
     * @param stream stream of the operation
     * @return a stage that completes with the operation, when the result is available; exceptionally on failure
     */
    default CompletionStage<Void> send(Operand values, int peer, DeviceStream stream) {
        return OperandCall.enqueue(this, Operation.SEND_RECEIVE, values, null, stream,
                (self, from, to, count, type) -> self.send(from, count, type, peer, stream));
    }

    /**
     * Receives elements from one rank. That rank {@linkplain #send sends} the same number of elements.
     *
     * @param values room for the elements
     * @param peer   the rank that sends the elements
     * @param stream stream of the operation
     * @return a stage that completes with the operation, when the result is available; exceptionally on failure
     */
    default CompletionStage<Void> receive(Operand values, int peer, DeviceStream stream) {
        return OperandCall.enqueue(this, Operation.SEND_RECEIVE, null, values, stream,
                (self, from, to, count, type) -> self.receive(to, count, type, peer, stream));
    }

    /**
     * Enqueues {@link BlockingOperations#allGatherv}. The returned stage completes as in
     * {@link #allToAll(Operand, Operand, DeviceStream)}.
     */
    default CompletionStage<Void> allGatherv(Operand send, Operand receive, DeviceStream stream, long... counts) {
        Communicator self = (Communicator) this;
        Blocking.requirePart(self, "allGatherv, send", send, false, counts);
        return Blocking.exchange(self, _ -> send, Blocking.parts(self, "allGatherv, receive", receive, counts), stream);
    }

    /**
     * Enqueues {@link BlockingOperations#gatherv}. The returned stage completes as in
     * {@link #allToAll(Operand, Operand, DeviceStream)}.
     */
    default CompletionStage<Void> gatherv(Operand send, @Nullable Operand receive, int root, DeviceStream stream,
            long... counts) {
        Communicator self = (Communicator) this;
        Blocking.requireRank(self, "gatherv, root", root);
        Blocking.requirePart(self, "gatherv, send", send, self.rank() != root, counts);
        return Blocking.exchange(self, peer -> peer == root ? send : null,
                self.rank() == root ? Blocking.parts(self, "gatherv, receive", receive, counts) : _ -> null, stream);
    }

    /**
     * Enqueues {@link BlockingOperations#scatterv}. The returned stage completes as in
     * {@link #allToAll(Operand, Operand, DeviceStream)}.
     */
    default CompletionStage<Void> scatterv(@Nullable Operand send, Operand receive, int root, DeviceStream stream,
            long... counts) {
        Communicator self = (Communicator) this;
        Blocking.requireRank(self, "scatterv, root", root);
        Blocking.requirePart(self, "scatterv, receive", receive, self.rank() != root, counts);
        return Blocking.exchange(self,
                self.rank() == root ? Blocking.parts(self, "scatterv, send", send, counts) : _ -> null,
                peer -> peer == root ? receive : null, stream);
    }

    /**
     * Enqueues {@link BlockingOperations#allToAllv}. The returned stage completes as in
     * {@link #allToAll(Operand, Operand, DeviceStream)}.
     */
    default CompletionStage<Void> allToAllv(Operand send, long[] sendCounts, Operand receive, long[] receiveCounts,
            DeviceStream stream) {
        Communicator self = (Communicator) this;
        return Blocking.exchange(self, Blocking.parts(self, "allToAllv, send", send, sendCounts),
                Blocking.parts(self, "allToAllv, receive", receive, receiveCounts), stream);
    }

    /** {@return a stage that completes when all ranks have reached this barrier in their streams} */
    default CompletionStage<Void> barrier(DeviceStream stream) {
        return allReduce(Operand.of(new byte[1]), ReduceOp.MAX, stream);
    }
}
