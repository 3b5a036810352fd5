package org.millrace;

import java.lang.foreign.MemorySegment;
import java.util.EnumSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * One rank's end of a group of ranks that run collective operations together.
 *
 * <p>
 * Operations of arrays, buffers and memory, which {@link Operand} makes operands of: {@link BlockingOperations} return
 * when they are complete, {@link TypedOperations} are enqueued to a {@link DeviceStream} and return a stage, and those
 * by {@link MemorySegment}, below, only enqueue, and allocate nothing. All ranks call the same ones in the same order.
 * The first error poisons the communicator: every later call reports it again, with the rank, the peer and what was
 * last seen of the connection. When an operation is said to have failed, no thread of this process touches its operands
 * any more. Peers that read them in place may, and a card that stores by itself, until {@link #close} or
 * {@link #abort()} has returned, or {@link Registration#close}.
 *
 * <p>
 * A communicator may be used by one thread at a time; {@link #abort()} and {@link #close()} are safe from any thread,
 * at any moment, more than once.
 */
public non-sealed interface Communicator extends BlockingOperations, TypedOperations, AutoCloseable {

    /** {@return this end's number: 0 to {@code size() - 1}} */
    int rank();

    /** {@return the number of ranks: 1 or more} */
    int size();

    /** {@return the device that this rank's operations run on} */
    Device device();

    /**
     * Reduces {@code count} elements of every rank and leaves the result with every rank.
     *
     * @param send    {@code count} elements of this rank; not changed unless it is {@code receive}
     * @param receive {@code count} elements for the result; the same segment as {@code send} for an operation in place.
     *                Overlapping otherwise is an error.
     * @param count   number of elements, not bytes; zero is allowed
     * @param type    what the elements are; memory is aligned to its size
     * @param op      how they are combined
     * @param stream  where the operation is enqueued
     * @throws IllegalArgumentException if a segment is closed, too small, misaligned or overlaps the other in part
     * @throws MillraceException        if the communicator has failed or is closed
     */
    void allReduce(MemorySegment send, MemorySegment receive, long count, DataType type, ReduceOp op,
            DeviceStream stream);

    /**
     * {@return what this communicator can do: {@link Operation#ALL_REDUCE} at least; the methods of other operations
     * throw a {@link MillraceException}}
     */
    default Set<Operation> operations() {
        return EnumSet.of(Operation.ALL_REDUCE);
    }

    /**
     * Gives every rank all ranks' elements.
     *
     * @param send    {@code count} elements of this rank; for an operation in place, {@code receive}'s part number
     *                {@code rank()}
     * @param receive {@code size() * count} elements, ordered by rank
     * @param count   number of elements of each rank; zero is allowed
     * @param type    what the elements are
     * @param stream  where the operation is enqueued
     * @throws IllegalArgumentException as by {@link #allReduce}
     * @throws MillraceException        if the communicator has failed or is closed, or its device has no such operation
     */
    default void allGather(MemorySegment send, MemorySegment receive, long count, DataType type, DeviceStream stream) {
        throw lacks(Operation.ALL_GATHER);
    }

    /**
     * Reduces all ranks' elements and leaves each rank its share of the result.
     *
     * @param send    {@code size() * count} elements; not changed unless {@code receive} lies in it
     * @param receive {@code count} elements; for an operation in place, {@code send}'s part number {@code rank()}
     * @param count   number of elements that each rank gets; zero is allowed
     * @param type    what the elements are
     * @param op      how they are combined
     * @param stream  where the operation is enqueued
     * @throws IllegalArgumentException as by {@link #allReduce}
     * @throws MillraceException        if the communicator has failed or is closed, or its device has no such operation
     */
    default void reduceScatter(MemorySegment send, MemorySegment receive, long count, DataType type, ReduceOp op,
            DeviceStream stream) {
        throw lacks(Operation.REDUCE_SCATTER);
    }

    /**
     * Gives every rank one rank's elements.
     *
     * @param send    {@code count} elements at the root; not looked at elsewhere, and may be null there
     * @param receive {@code count} elements; the same segment as {@code send} for an operation in place
     * @param count   number of elements; zero is allowed
     * @param type    what the elements are
     * @param root    the rank whose elements they are
     * @param stream  where the operation is enqueued
     * @throws IllegalArgumentException as by {@link #allReduce}, or if there is no such rank
     * @throws MillraceException        if the communicator has failed or is closed, or its device has no such operation
     */
    default void broadcast(@Nullable MemorySegment send, MemorySegment receive, long count, DataType type, int root,
            DeviceStream stream) {
        throw lacks(Operation.BROADCAST);
    }

    /**
     * Reduces all ranks' elements and leaves the result with one of them.
     *
     * @param send    {@code count} elements of this rank
     * @param receive {@code count} elements at the root, the same segment as {@code send} for an operation in place;
     *                not looked at elsewhere, and may be null there
     * @param count   number of elements; zero is allowed
     * @param type    what the elements are
     * @param op      how they are combined
     * @param root    the rank that gets the result
     * @param stream  where the operation is enqueued
     * @throws IllegalArgumentException as by {@link #allReduce}, or if there is no such rank
     * @throws MillraceException        if the communicator has failed or is closed, or its device has no such operation
     */
    default void reduce(MemorySegment send, @Nullable MemorySegment receive, long count, DataType type, ReduceOp op,
            int root, DeviceStream stream) {
        throw lacks(Operation.REDUCE);
    }

    /**
     * Exchanges elements between all ranks: part {@code j} of rank {@code i} becomes part {@code i} of rank {@code j}.
     *
     * @param send    {@code size() * count} elements, ordered by the rank that gets them
     * @param receive {@code size() * count} elements, ordered by the rank they come from; apart from {@code send}
     * @param count   number of elements from each rank to each; zero is allowed
     * @param type    what the elements are
     * @param stream  where the operation is enqueued
     * @throws IllegalArgumentException as by {@link #allReduce}
     * @throws MillraceException        if the communicator has failed or is closed, or its device has no such operation
     */
    default void allToAll(MemorySegment send, MemorySegment receive, long count, DataType type, DeviceStream stream) {
        throw lacks(Operation.ALL_TO_ALL);
    }

    /**
     * Gives one rank all ranks' elements.
     *
     * @param send    {@code count} elements of this rank; for an operation in place, the root's are {@code receive}'s
     *                part number {@code root}
     * @param receive {@code size() * count} elements at the root, ordered by rank; not looked at elsewhere, and may be
     *                null there
     * @param count   number of elements of each rank; zero is allowed
     * @param type    what the elements are
     * @param root    the rank that gets them
     * @param stream  where the operation is enqueued
     * @throws IllegalArgumentException as by {@link #allReduce}, or if there is no such rank
     * @throws MillraceException        if the communicator has failed or is closed, or its device has no such operation
     */
    default void gather(MemorySegment send, @Nullable MemorySegment receive, long count, DataType type, int root,
            DeviceStream stream) {
        throw lacks(Operation.GATHER);
    }

    /**
     * Gives every rank its part of one rank's elements.
     *
     * @param send    {@code size() * count} elements at the root, ordered by rank; not looked at elsewhere, and may be
     *                null there
     * @param receive {@code count} elements of this rank; for an operation in place, the root's are {@code send}'s part
     *                number {@code root}
     * @param count   number of elements of each rank; zero is allowed
     * @param type    what the elements are
     * @param root    the rank whose elements they are
     * @param stream  where the operation is enqueued
     * @throws IllegalArgumentException as by {@link #allReduce}, or if there is no such rank
     * @throws MillraceException        if the communicator has failed or is closed, or its device has no such operation
     */
    default void scatter(@Nullable MemorySegment send, MemorySegment receive, long count, DataType type, int root,
            DeviceStream stream) {
        throw lacks(Operation.SCATTER);
    }

    /**
     * Sends elements to one rank, which {@linkplain #receive receives} as many. What depends on each other, such as two
     * ranks that exchange elements, belongs into one {@link #group}.
     *
     * @param buffer {@code count} elements
     * @param count  number of elements; zero is allowed
     * @param type   what the elements are
     * @param peer   the rank that receives them
     * @param stream where the operation is enqueued
     * @throws IllegalArgumentException as by {@link #allReduce}, or if there is no such rank
     * @throws MillraceException        if the communicator has failed or is closed, or its device has no such operation
     */
    default void send(MemorySegment buffer, long count, DataType type, int peer, DeviceStream stream) {
        throw lacks(Operation.SEND_RECEIVE);
    }

    /**
     * Receives elements from one rank, which {@linkplain #send sends} as many.
     *
     * @param buffer room for {@code count} elements
     * @param count  number of elements; zero is allowed
     * @param type   what the elements are
     * @param peer   the rank that sends them
     * @param stream where the operation is enqueued
     * @throws IllegalArgumentException as by {@link #allReduce}, or if there is no such rank
     * @throws MillraceException        if the communicator has failed or is closed, or its device has no such operation
     */
    default void receive(MemorySegment buffer, long count, DataType type, int peer, DeviceStream stream) {
        throw lacks(Operation.SEND_RECEIVE);
    }

    /**
     * Enqueues several operations as one: sends and receives among them go on at the same time. Operations of other
     * communicators among them belong to it too, as they do in a {@link Millrace#group}.
     *
     * @param operations enqueues them, on the calling thread. If it throws, what it had enqueued is issued all the
     *                   same.
     * @throws MillraceException if the communicator has failed or is closed, or its device has no groups
     */
    default void group(Runnable operations) {
        throw lacks(Operation.SEND_RECEIVE);
    }

    /**
     * Lets operations use memory in place. Those whose operands lie in it, and whose device and way to the peer can,
     * then send from there and receive there, without a copy through slots; all others run as ever. It is this rank's
     * own matter: the others may register other memory, or none.
     *
     * @param memory native memory that every thread may use; it outlives the registration
     * @return to be closed before the memory is freed
     * @throws IllegalArgumentException if the memory is on the heap, read-only, or confined to a thread
     * @throws MillraceException        if the communicator has failed or is closed, or its device registers no memory
     */
    default Registration register(MemorySegment memory) {
        throw new MillraceException(device().name() + " registers no memory");
    }

    /**
     * Prepares operations that will be launched more than once; nothing runs yet. All ranks do so with the same
     * operations.
     *
     * @param stream     for which {@link Plan#launch} names another; on a launch further streams that operations name
     *                   wait for the plan, and it for what they hold
     * @param operations calls this communicator's operations, on the calling thread, as in a {@link #group}. If it
     *                   throws, there is no plan.
     * @return the plan; its operands must stay until the last launch is complete
     * @throws IllegalStateException if called in a group
     * @throws MillraceException     if the communicator has failed or is closed, or its device has no plans
     */
    default Plan plan(DeviceStream stream, Runnable operations) {
        throw new MillraceException(device().name() + " has no plans: enqueue the operations each time");
    }

    /**
     * Makes new communicators of this one's ranks, which goes on to be usable. All ranks call it; it returns when the
     * new group has come together. The new communicator has this one's device, and its streams can be used with both;
     * either may be closed first. {@link #abort()} of this one gives up the operations of the new one too.
     *
     * @param color ranks that give the same one come together; less than 0 for a rank that wants no new communicator
     * @param key   the new ranks are in the order of the keys, and of the ranks here where keys are the same
     * @return this rank's end of its new communicator; empty if {@code color} is less than 0
     * @throws MillraceException if the communicator has failed or is closed, if its device cannot be split, or if the
     *                           new group did not come together
     */
    default Optional<Communicator> split(int color, int key) {
        throw new MillraceException(device().name() + " cannot be split");
    }

    private MillraceException lacks(Operation operation) {
        return new MillraceException(device().name() + " has no " + operation.label() + " yet; it has "
                + String.join(", ", operations().stream().map(Operation::label).toList())
                + ". MILLRACE_DEVICE=cuda has them all");
    }

    /**
     * {@return how the last operation that was issued travels; empty if there was no operation yet, if nothing had to
     * travel, or if the device does not tell, as libnccl does not}
     */
    default Optional<Route> route() {
        return Optional.empty();
    }

    /**
     * {@return what the channels have worked on last: for each channel the last works that it has begun, oldest first,
     * as far as the device remembers them; empty if the device does not tell, as libnccl does not. From any thread,
     * also while operations run or hang}
     */
    default List<ChannelWork> recentWork() {
        return List.of();
    }

    /**
     * Looks for what has gone wrong meanwhile, and frees what completed operations no longer need
     * ({@code ncclCommGetAsyncError}). Never waits; from any thread. A program that launches nothing for long calls it
     * now and then.
     *
     * @return what the next operation would throw; empty if all is well
     */
    default Optional<MillraceException> asyncError() {
        return Optional.empty();
    }

    /** As {@link #abort(Throwable)}, for no reason that the other ranks could be told. */
    default void abort() {
        abort(null);
    }

    /**
     * Gives up every operation, tells the other ranks why, and leaves the communicator unusable. Returns when no thread
     * touches an operand any more. On the other ranks every operation that is not complete, and every later call, fails
     * with an {@link AbortedException} that names this rank, and the reason's class and message. {@link Millrace#run}
     * does so with what a program throws.
     *
     * @param reason what made the program give up; null if there is nothing to tell
     */
    void abort(@Nullable Throwable reason);

    /**
     * Waits for the operations in flight and for the other ranks to close theirs, and leaves the group. A rank that is
     * in an operation which this one has not launched, or launches one afterwards, fails at once with an
     * {@link AbortedException} that names this rank.
     */
    @Override
    void close();
}
