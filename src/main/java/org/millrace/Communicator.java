package org.millrace;

import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.EnumSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Membership of one rank in a group of ranks that run collective operations together.
 *
 * <p>
 * Operations exist in three forms. {@link BlockingOperations} return when they are complete. {@link TypedOperations}
 * are enqueued to a {@link DeviceStream} and return a stage. Both take operands of arrays, buffers and memory, created
 * by {@link Operand}. The methods below that take a {@link MemorySegment} only enqueue an operation, and allocate
 * nothing. All ranks call the same operations in the same order.
 *
 * <p>
 * A call of an operation throws a {@link MillraceException} after an error, after {@link #close}, or if the device
 * lacks the operation. Wrong arguments cause the exceptions that {@link #allReduce} lists. The first error makes the
 * communicator unusable. Every later call reports the same error, with the rank and the peer. When an operation is
 * reported as failed, no thread of this process accesses its operands. A peer that reads operands in place, and a
 * network card that stores data in operands, may still access the operands. Their access ends when {@link #close},
 * {@link #abort()} or {@link Registration#close} returns.
 *
 * <p>
 * One thread at a time may use a communicator. A call during another thread's call throws an
 * {@link IllegalStateException} that names both threads. {@link #abort()} and {@link #close()} are safe from any
 * thread, at any time, and repeatedly.
 */
public non-sealed interface Communicator extends BlockingOperations, TypedOperations, AutoCloseable {

    /** {@return this rank's number: 0 to {@code size() - 1}} */
    int rank();

    /** {@return the number of ranks: 1 or more} */
    int size();

    /** {@return the device on which this rank's operations run} */
    Device device();

    /**
     * {@return a stream for asynchronous operations of a program that needs only one stream} Each call returns the same
     * stream of {@link #device()}. The communicator creates the stream at the first call and closes it. Operations
     * without a stream use other streams, and can overtake operations of this stream.
     *
     * @throws MillraceException if the communicator has failed or is closed, or if its device supports only
     *                           {@link Device#newStream()}
     */
    default DeviceStream stream() {
        throw new MillraceException(device().name() + " has no stream of its own: use Device.newStream()");
    }

    /**
     * Reduces {@code count} elements of every rank and stores the result on every rank.
     *
     * @param send    {@code count} elements of this rank; not changed, unless {@code receive} is the same segment
     * @param receive {@code count} elements for the result; the same segment as {@code send} for an operation in place.
     *                Other overlaps are errors.
     * @param count   number of elements, not bytes; zero is allowed
     * @param type    element type; both segments must be aligned to its size
     * @param op      the reduction
     * @param stream  stream of the operation
     * @throws IllegalArgumentException if a segment is closed, too small or misaligned, or if the two segments partly
     *                                  overlap
     * @throws MillraceException        if the communicator has failed or is closed
     */
    void allReduce(MemorySegment send, MemorySegment receive, long count, DataType type, ReduceOp op,
            DeviceStream stream);

    /**
     * {@return the operations that this communicator supports, {@link Operation#ALL_REDUCE} at least} The methods of
     * unsupported operations throw a {@link MillraceException}.
     */
    default Set<Operation> operations() {
        return EnumSet.of(Operation.ALL_REDUCE);
    }

    /**
     * Gathers all ranks' elements on every rank.
     *
     * @param send    {@code count} elements of this rank; for an operation in place, part number {@code rank()} of
     *                {@code receive}
     * @param receive {@code size() * count} elements, ordered by rank
     * @param count   number of elements of each rank; zero is allowed
     * @param type    element type
     * @param stream  stream of the operation
     */
    default void allGather(MemorySegment send, MemorySegment receive, long count, DataType type, DeviceStream stream) {
        throw lacks(Operation.ALL_GATHER);
    }

    /**
     * Reduces all ranks' elements and stores on each rank its part of the result.
     *
     * @param send    {@code size() * count} elements; not changed, unless {@code receive} lies in this segment
     * @param receive {@code count} elements; for an operation in place, part number {@code rank()} of {@code send}
     * @param count   number of elements for each rank; zero is allowed
     * @param type    element type
     * @param op      the reduction
     * @param stream  stream of the operation
     */
    default void reduceScatter(MemorySegment send, MemorySegment receive, long count, DataType type, ReduceOp op,
            DeviceStream stream) {
        throw lacks(Operation.REDUCE_SCATTER);
    }

    /**
     * Sends one rank's elements to every rank.
     *
     * @param send    {@code count} elements at the root; ignored elsewhere, where it may be null
     * @param receive {@code count} elements; the same segment as {@code send} for an operation in place
     * @param count   number of elements; zero is allowed
     * @param type    element type
     * @param root    the rank that owns the elements
     * @param stream  stream of the operation
     * @throws IllegalArgumentException for the reasons listed at {@link #allReduce}, or if the rank does not exist
     */
    default void broadcast(@Nullable MemorySegment send, MemorySegment receive, long count, DataType type, int root,
            DeviceStream stream) {
        throw lacks(Operation.BROADCAST);
    }

    /**
     * Reduces all ranks' elements and stores the result on one rank.
     *
     * @param send    {@code count} elements of this rank
     * @param receive {@code count} elements at the root, the same segment as {@code send} for an operation in place;
     *                ignored elsewhere, where it may be null
     * @param count   number of elements; zero is allowed
     * @param type    element type
     * @param op      the reduction
     * @param root    the rank of the result
     * @param stream  stream of the operation
     * @throws IllegalArgumentException for the reasons listed at {@link #allReduce}, or if the rank does not exist
     */
    default void reduce(MemorySegment send, @Nullable MemorySegment receive, long count, DataType type, ReduceOp op,
            int root, DeviceStream stream) {
        throw lacks(Operation.REDUCE);
    }

    /**
     * Exchanges elements between all ranks: part {@code j} of rank {@code i} becomes part {@code i} of rank {@code j}.
     *
     * @param send    {@code size() * count} elements, ordered by receiving rank
     * @param receive {@code size() * count} elements, ordered by sending rank; must not overlap {@code send}
     * @param count   number of elements that each rank sends to each rank; zero is allowed
     * @param type    element type
     * @param stream  stream of the operation
     */
    default void allToAll(MemorySegment send, MemorySegment receive, long count, DataType type, DeviceStream stream) {
        throw lacks(Operation.ALL_TO_ALL);
    }

    /**
     * Gathers all ranks' elements on one rank.
     *
     * @param send    {@code count} elements of this rank; for an operation in place, the root passes part number
     *                {@code root} of {@code receive}
     * @param receive {@code size() * count} elements at the root, ordered by rank; ignored elsewhere, where it may be
     *                null
     * @param count   number of elements of each rank; zero is allowed
     * @param type    element type
     * @param root    the rank that receives the elements
     * @param stream  stream of the operation
     * @throws IllegalArgumentException for the reasons listed at {@link #allReduce}, or if the rank does not exist
     */
    default void gather(MemorySegment send, @Nullable MemorySegment receive, long count, DataType type, int root,
            DeviceStream stream) {
        throw lacks(Operation.GATHER);
    }

    /**
     * Sends every rank its part of one rank's elements.
     *
     * @param send    {@code size() * count} elements at the root, ordered by rank; ignored elsewhere, where it may be
     *                null
     * @param receive {@code count} elements of this rank; for an operation in place, the root passes part number
     *                {@code root} of {@code send}
     * @param count   number of elements of each rank; zero is allowed
     * @param type    element type
     * @param root    the rank that owns the elements
     * @param stream  stream of the operation
     * @throws IllegalArgumentException for the reasons listed at {@link #allReduce}, or if the rank does not exist
     */
    default void scatter(@Nullable MemorySegment send, MemorySegment receive, long count, DataType type, int root,
            DeviceStream stream) {
        throw lacks(Operation.SCATTER);
    }

    /**
     * Sends elements to one rank. That rank {@linkplain #receive receives} the same number of elements. Operations that
     * depend on each other belong in one {@link #group}, for instance an exchange between two ranks.
     *
     * @param buffer {@code count} elements
     * @param count  number of elements; zero is allowed
     * @param type   element type
     * @param peer   the rank that receives the elements
     * @param stream stream of the operation
     * @throws IllegalArgumentException for the reasons listed at {@link #allReduce}, or if the rank does not exist
     */
    default void send(MemorySegment buffer, long count, DataType type, int peer, DeviceStream stream) {
        throw lacks(Operation.SEND_RECEIVE);
    }

    /**
     * Receives elements from one rank. That rank {@linkplain #send sends} the same number of elements.
     *
     * @param buffer room for {@code count} elements
     * @param count  number of elements; zero is allowed
     * @param type   element type
     * @param peer   the rank that sends the elements
     * @param stream stream of the operation
     * @throws IllegalArgumentException for the reasons listed at {@link #allReduce}, or if the rank does not exist
     */
    default void receive(MemorySegment buffer, long count, DataType type, int peer, DeviceStream stream) {
        throw lacks(Operation.SEND_RECEIVE);
    }

    /**
     * Enqueues several operations as one group. The sends and receives of the group run at the same time. The function
     * may also call operations of other communicators: these belong to the group, too, as in a {@link Millrace#group}.
     *
     * @param operations function that enqueues the operations, on the calling thread. If it throws, the operations
     *                   enqueued before are still issued.
     * @throws MillraceException if the communicator has failed or is closed, or its device has no groups
     */
    default void group(Runnable operations) {
        throw lacks(Operation.SEND_RECEIVE);
    }

    /**
     * Allows operations to use memory in place. An operation with operands in the memory sends from the memory and
     * receives into it, without a copy through slots. The device and the transport to the peer must support operations
     * in place; otherwise operations run as before. Only this rank is affected: other ranks may register other memory,
     * or none.
     *
     * @param memory native memory that every thread may use; it must exist until the registration is closed
     * @return the registration; the caller closes the registration before it frees the memory
     * @throws IllegalArgumentException if the memory is on the heap, read-only, or confined to a thread
     * @throws MillraceException        if the communicator has failed or is closed, or its device registers no memory
     */
    default Registration register(MemorySegment memory) {
        throw new MillraceException(device().name() + " registers no memory");
    }

    /**
     * Prepares operations for repeated launches, without running them. All ranks prepare the same operations.
     *
     * @param stream     placeholder for the stream of each {@link Plan#launch}. If the operations also use other
     *                   streams, the plan waits for the earlier work of those streams, and their later work waits for
     *                   the plan
     * @param operations function that calls this communicator's operations, on the calling thread, as in a
     *                   {@link #group}. If it throws, no plan is created.
     * @return the plan; the operands of its operations must exist until the last launch is complete
     * @throws IllegalStateException if called in a group
     * @throws MillraceException     if the communicator has failed or is closed, or its device has no plans
     */
    default Plan plan(DeviceStream stream, Runnable operations) {
        throw new MillraceException(device().name() + " has no plans: enqueue the operations each time");
    }

    /**
     * Creates new communicators from the ranks of this communicator, which stays usable. All ranks call this method. It
     * returns when all ranks of the new group have joined. The new communicator uses the device of this communicator,
     * and streams of that device work with both communicators. Either communicator may be closed first.
     * {@link #abort()} of this communicator also aborts the operations of the new communicator.
     *
     * @param color ranks with the same color form a group; less than 0 for a rank without a new communicator
     * @param key   the new ranks are ordered by key, and by their rank in this communicator where keys are equal
     * @return this rank's new communicator; empty if {@code color} is less than 0
     * @throws MillraceException if the communicator has failed or is closed, if its device cannot be split, or if the
     *                           new group was not completed
     */
    default Optional<Communicator> split(int color, int key) {
        throw new MillraceException(device().name() + " cannot be split");
    }

    /** {@return the result of {@link #shrink(Duration)} with a deadline of {@code MILLRACE_CONNECT_DEADLINE}} */
    default Communicator shrink() {
        throw new MillraceException(device().name() + " cannot be shrunk");
    }

    /**
     * Creates a new communicator of the living ranks, usually after an operation has failed ({@code MPIX_Comm_shrink}).
     * Every living rank calls this method. The ranks keep their order and are numbered from 0 without gaps.
     *
     * <p>
     * This communicator is revoked and closed first: its operations fail on all ranks, and no thread of this process
     * accesses an operand when this method returns or throws. The new communicator has a separate device, new
     * connections and new shared memory. An excluded rank cannot access this memory. Data in memory of the old device
     * must be copied before the new communicator can use it.
     *
     * <p>
     * A rank is dead if its process has ended, or if it has closed or aborted this communicator. This method waits for
     * every other rank until the deadline, also for a rank whose process is stopped. A rank that has not called this
     * method by then is excluded. An excluded rank gets an {@link ExcludedException} from this method, also if it
     * resumes later. At most one group continues. If all ranks are on one host and share a decision place, the group
     * that decides first at this place continues. A decision place is, for example, a {@code file:} rendezvous or the
     * rendezvous of {@code millrace run}. Without a shared decision place, a strict majority of the ranks continues.
     *
     * @param deadline maximum time to wait for the living ranks, more than 0. The completion of the new communicator
     *                 has the same time limit, but at least 5 s. Each further lost or stopped rank adds at most half of
     *                 the deadline, or 5 s if half of the deadline is shorter
     * @return this rank's new communicator; the caller closes the communicator. If a member is lost at the end of the
     *         call, the operations of the new communicator fail. The program can then shrink the new communicator
     * @throws IllegalArgumentException if the deadline is not more than 0
     * @throws ExcludedException        if other ranks continue or may continue without this rank
     * @throws AbortedException         if this rank has closed, aborted or shrunk this communicator before. It then
     *                                  counts as dead, and the other ranks continue without it
     * @throws DeadlineException        if two attempts to complete the same new group missed their deadline. The
     *                                  exception's peer is the missing rank. Other failures cause other exceptions
     * @throws MillraceException        if the device of this communicator cannot be shrunk
     */
    default Communicator shrink(Duration deadline) {
        throw new MillraceException(device().name() + " cannot be shrunk");
    }

    /**
     * Agrees on a value with all living ranks, also after an operation has failed ({@code MPIX_Comm_agree}). Every
     * living rank calls this method. A communicator that has failed stays failed.
     *
     * @param value value of this rank
     * @return true if all living ranks have passed true. All living ranks get the same value. The value is false if one
     *         rank makes a call for the first time and another rank repeats the same call after a failure
     * @throws DeadlineException if a living rank does not call this method within {@code MILLRACE_CONNECT_DEADLINE}.
     *                           Only {@link #shrink(Duration)} excludes such a rank
     * @throws ExcludedException if other ranks have called {@link #shrink(Duration)} and continue without this rank, or
     *                           if the living ranks have neither a majority nor a shared decision place
     * @throws MismatchException if other ranks have called {@link #shrink(Duration)}. The next shrink of this rank
     *                           joins them
     * @throws AbortedException  if this rank has closed, aborted or shrunk this communicator before
     * @throws MillraceException if the device of this communicator has no agreements
     */
    default boolean agree(boolean value) {
        throw new MillraceException(device().name() + " has no agreements");
    }

    private MillraceException lacks(Operation operation) {
        return new MillraceException(device().name() + " has no " + operation.label() + " yet; it has "
                + String.join(", ", operations().stream().map(Operation::label).toList())
                + ". MILLRACE_DEVICE=cuda has them all");
    }

    /**
     * {@return the route of the operation issued last; empty if no operation was issued, if the last operation moved no
     * data, or if the device does not report routes (libnccl reports none)}
     */
    default Optional<Route> route() {
        return Optional.empty();
    }

    /**
     * {@return the most recent work of each channel, oldest first; empty if the device does not report its work
     * (libnccl does not)} The device keeps a limited number of entries for each channel. Callable from any thread, also
     * while operations run or hang.
     */
    default List<ChannelWork> recentWork() {
        return List.of();
    }

    /**
     * Checks for an asynchronous error, and frees resources of completed operations ({@code ncclCommGetAsyncError}).
     * Never waits; callable from any thread. A program that launches nothing for a long time should call this method
     * occasionally.
     *
     * @return the exception that the next operation would throw; empty without an error
     */
    default Optional<MillraceException> asyncError() {
        return Optional.empty();
    }

    /** Does the same as {@link #abort(Throwable)}, but sends no reason to the other ranks. */
    default void abort() {
        abort(null);
    }

    /**
     * Cancels every operation, sends the reason to the other ranks, and makes the communicator unusable. Returns when
     * no thread accesses an operand. On the other ranks every incomplete operation and every later call fails with an
     * {@link AbortedException}. The exception names this rank, and the class and message of the reason.
     * {@link Millrace#run} aborts with the exception that a program throws. The other ranks can
     * {@linkplain #shrink(Duration) continue} without this rank, which cannot shrink this communicator afterwards.
     *
     * @param reason reason of the abort; null for none
     */
    void abort(@Nullable Throwable reason);

    /**
     * Waits until the operations in flight are complete and the other ranks close, too. Then leaves the group. Another
     * rank may be in an operation that this rank has not launched, or may launch an operation after this call. Such a
     * rank fails immediately with an {@link AbortedException} that names this rank.
     *
     * @throws DeadlineException if an operation is not complete, or another rank has not closed, within
     *                           {@code MILLRACE_CLOSE_DEADLINE}. The exception is thrown after everything is freed. A
     *                           rank that has not closed is not affected
     */
    @Override
    void close();
}
