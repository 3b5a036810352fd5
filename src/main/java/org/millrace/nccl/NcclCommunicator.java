package org.millrace.nccl;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.ToIntBiFunction;
import java.util.function.ToIntFunction;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.MillraceException;
import org.millrace.ReduceOp;
import org.millrace.Registration;
import org.millrace.agent.Waiting;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaStream;
import org.millrace.cuda.DeviceSegments;
import org.millrace.cuda.NativeHandle;
import org.millrace.ffi.nccl.ncclUniqueId;
import org.millrace.ffi.nccl.ncclWaitSignalDesc_t;
import org.millrace.ffi.nccl.nccl_h;
import org.millrace.foreign.CFunction;

/**
 * One rank's end of an NCCL communicator, created by {@link NcclLibrary#join(CudaDevice, UniqueId, int, int)} or from
 * another communicator.
 *
 * <p>
 * An operation enqueues to a stream of the communicator's device and returns. With a non-blocking communicator the call
 * may continue after it has returned, so {@link #awaitReady} must precede the next call. Counts are numbers of
 * elements. Operands are device memory, or pinned host memory as the device sees it. Operations allocate nothing,
 * except for a {@link ReduceOp.PreMulSum}, which is created for the call and destroyed after it. All of them throw
 * {@link NcclException} if NCCL refuses. They throw {@link IllegalArgumentException} if an operand is too small, closed
 * or in the Java heap. They throw {@link IllegalStateException} if the communicator or the stream is closed.
 *
 * <p>
 * One thread at a time may use it. {@link #abort()} and {@link #close()} are safe from any thread, at any time, more
 * than once. A call on a closed communicator throws {@link IllegalStateException}.
 */
public final class NcclCommunicator implements AutoCloseable {

    /** Maximum time of {@link #abort()} to wait until calls of other threads have left, in nanoseconds. */
    private static final long ABORT_GRACE_NANOS = 200_000_000;
    /** Rank argument of an existing rank of a communicator that grows. */
    private static final int EXISTING_RANK = -1;
    private static final Duration CLOSE_DEADLINE = Duration.ofSeconds(60);

    /** Value of {@code flags} in NCCL's functions, which defines no flags yet. */
    private static final int NO_FLAGS = 0;

    final NcclLibrary library;
    final CudaDevice device;
    final NativeHandle handle;
    /** Also set by the first call that is still in progress when it returns. */
    volatile boolean nonBlocking;
    /** Negative until NCCL was queried, like {@link #size}. */
    private volatile int rank;
    private volatile int size;
    private final AtomicBoolean aborting;
    private final AtomicBoolean ending = new AtomicBoolean();
    private final @Nullable NcclCommunicator parent;

    private NcclCommunicator(NcclLibrary library, CudaDevice device, MemorySegment slot,
            @Nullable NcclCommunicator parent, int size, int rank, boolean nonBlocking, AtomicBoolean aborting) {
        this.library = library;
        this.device = device;
        this.handle =
                NativeHandle.pending("NCCL communicator", slot, address -> release(library, address, aborting.get()));
        this.size = size;
        this.rank = rank;
        this.nonBlocking = nonBlocking;
        this.aborting = aborting;
        this.parent = parent;
    }

    private static void release(NcclLibrary library, MemorySegment address, boolean abort) {
        if (abort) {
            library.checkRelease(NcclFunction.COMM_ABORT, nccl_h.ncclCommAbort(address));
        } else {
            library.checkRelease(NcclFunction.COMM_DESTROY, nccl_h.ncclCommDestroy(address));
        }
    }

    static NcclCommunicator joined(NcclLibrary library, CudaDevice device, MemorySegment slot, int size, int rank,
            NcclConfig config, NcclFunction function, int code) {
        if (code != nccl_h.ncclSuccess() && code != nccl_h.ncclInProgress()) {
            throw library.failure(function, "rank " + rank + " of " + size + ", " + device, MemorySegment.NULL, code);
        }
        return new NcclCommunicator(library, device, slot, null, size, rank,
                code == nccl_h.ncclInProgress() || config.isNonBlocking(), new AtomicBoolean());
    }

    /**
     * Signals of one peer to wait for.
     *
     * @param count   number of signals, 1 or more
     * @param signal  their id, as the peer passes it
     * @param context their context, as the peer passes it
     */
    public record Awaited(int count, int peer, int signal, int context) {
    }

    /** {@return the number that CUDA gives this rank's GPU in this process} */
    public int cudaDevice() {
        return query(NcclFunction.COMM_CU_DEVICE, (communicator, out) -> nccl_h.ncclCommCuDevice(communicator, out));
    }

    /**
     * {@return the state of the operations so far: success, in progress, or the error of the operation that failed;
     * null for an error that these bindings do not know}
     */
    public @Nullable NcclResult asyncError() {
        return NcclResult.ofCode(asyncCode());
    }

    private int asyncCode() {
        return query(NcclFunction.COMM_GET_ASYNC_ERROR,
                (communicator, out) -> nccl_h.ncclCommGetAsyncError(communicator, out));
    }

    /**
     * Waits until a non-blocking communicator has completed its last call.
     *
     * @param deadline maximum time to wait
     * @throws NcclException     if that call failed
     * @throws MillraceException if it was not complete in time
     */
    public void awaitReady(Duration deadline) {
        NcclCommunicator asked = handle.isMade() || parent == null ? this : parent;
        if (!Waiting.until(asked::isReady, deadline)) {
            throw new MillraceException(this + " was still at its last call after " + deadline.toMillis()
                    + " ms. See whether every rank makes the same call"
                    + " and can reach the others, and abort the communicator to give the call up");
        }
    }

    private boolean isReady() {
        int code = asyncCode();
        if (code == nccl_h.ncclInProgress()) {
            return false;
        }
        if (code != nccl_h.ncclSuccess()) {
            throw library.failure(NcclFunction.COMM_GET_ASYNC_ERROR, where(), MemorySegment.NULL, code);
        }
        return true;
    }

    /**
     * Splits the communicator: the ranks of one color form a new communicator. All ranks call it.
     *
     * @param color  0 or more; negative for a rank without a new communicator ({@code NCCL_SPLIT_NOCOLOR})
     * @param key    determines the order of the ranks of a color; ranks with equal keys keep their order
     * @param config options; null for this communicator's
     * @return the new communicator; empty for a negative color. In a group, or if this one is non-blocking, it can be
     *         used once the group has ended and {@link #awaitReady} has returned
     */
    public Optional<NcclCommunicator> split(int color, int key, @Nullable NcclConfig config) {
        library.require(NcclFunction.COMM_SPLIT);
        int colour = color < 0 ? nccl_h.NCCL_SPLIT_NOCOLOR() : color;
        NcclCommunicator child = child(config, NcclFunction.COMM_SPLIT,
                (communicator, out, options) -> nccl_h.ncclCommSplit(communicator, colour, key, out, options));
        return color < 0 ? Optional.empty() : Optional.of(child);
    }

    /**
     * Creates a new communicator without some ranks. All ranks except the excluded ones call it.
     *
     * @param abort  whether operations in progress are aborted first, as after an error; otherwise they must have
     *               completed
     * @param config options; null for this communicator's
     * @return the new communicator; usable as after {@link #split}
     */
    public NcclCommunicator shrink(int[] excluded, boolean abort, @Nullable NcclConfig config) {
        library.require(NcclFunction.COMM_SHRINK);
        int flags = abort ? nccl_h.NCCL_SHRINK_ABORT() : nccl_h.NCCL_SHRINK_DEFAULT();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment ranks = arena.allocateFrom(ValueLayout.JAVA_INT, excluded);
            return child(config, NcclFunction.COMM_SHRINK, (communicator, out, options) -> nccl_h
                    .ncclCommShrink(communicator, ranks, excluded.length, out, options, flags));
        }
    }

    private interface MakesChild {
        int call(MemorySegment communicator, MemorySegment out, MemorySegment options);
    }

    private NcclCommunicator child(@Nullable NcclConfig config, NcclFunction function, MakesChild call) {
        // NCCL may write the new communicator long after the call has returned, so its slot is never freed.
        MemorySegment slot = Arena.global().allocate(ValueLayout.ADDRESS);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment options = config == null ? MemorySegment.NULL : config.write(arena, library);
            enter(function, communicator -> call.call(communicator, slot, options));
        }
        return new NcclCommunicator(library, device, slot, this, -1, -1,
                config == null ? nonBlocking : config.isNonBlocking(), new AtomicBoolean());
    }

    /**
     * Creates an id for ranks that join this communicator. One rank creates it, passes it to {@link #grow} and sends it
     * to the new ranks, which pass it to {@link NcclLibrary#joinGrowing}. NCCL 2.29.
     */
    public UniqueId newUniqueId() {
        library.require(NcclFunction.COMM_GET_UNIQUE_ID);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment id = ncclUniqueId.allocate(arena);
            enter(NcclFunction.COMM_GET_UNIQUE_ID, communicator -> nccl_h.ncclCommGetUniqueId(communicator, id));
            return UniqueId.read(id);
        }
    }

    /**
     * Creates a new communicator from this one's ranks, which keep their numbers, and new ranks. All ranks call it,
     * while the new ranks call {@link NcclLibrary#joinGrowing}. NCCL 2.29.
     *
     * @param newSize number of ranks of the new communicator; more than {@link #size()}
     * @param id      the id on the rank that created it; null on all others
     * @param config  options; null for this communicator's
     * @return the new communicator; usable as after {@link #split}
     */
    public NcclCommunicator grow(int newSize, @Nullable UniqueId id, @Nullable NcclConfig config) {
        library.require(NcclFunction.COMM_GROW);
        if (newSize <= size()) {
            throw new IllegalArgumentException(
                    this + " has " + size() + " ranks and cannot grow to " + newSize + ": give the new number of all");
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment drawn = id == null ? MemorySegment.NULL : id.write(arena);
            return child(config, NcclFunction.COMM_GROW, (communicator, out, options) -> nccl_h
                    .ncclCommGrow(communicator, newSize, drawn, EXISTING_RANK, out, options));
        }
    }

    /** {@return NCCL's own use of the GPU's memory for this communicator; NCCL 2.29.7} */
    public NcclMemory memory() {
        return new NcclMemory(this);
    }

    /** {@return NCCL's properties of this communicator; NCCL 2.29.7} */
    public NcclProperties properties() {
        return NcclProperties.of(this);
    }

    /** Stops the operations in progress, so that the communicator can be split, shrunk or closed. NCCL 2.28.7. */
    public void revoke() {
        library.require(NcclFunction.COMM_REVOKE);
        enter(NcclFunction.COMM_REVOKE,
                communicator -> nccl_h.ncclCommRevoke(communicator, nccl_h.NCCL_REVOKE_DEFAULT()));
    }

    /**
     * Flushes the operations in progress. Afterwards the communicator can only be closed. {@link #close()} calls it if
     * necessary.
     */
    public void finish() {
        library.require(NcclFunction.COMM_FINALIZE);
        ending.set(true);
        enter(NcclFunction.COMM_FINALIZE, nccl_h::ncclCommFinalize);
    }

    /** Lets NCCL use device memory in place. */
    public Registration register(MemorySegment memory) {
        library.require(NcclFunction.COMM_REGISTER);
        MemorySegment address = DeviceSegments.pointer("memory to register", memory, 0);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.ADDRESS);
            enter(NcclFunction.COMM_REGISTER,
                    communicator -> nccl_h.ncclCommRegister(communicator, address, memory.byteSize(), out));
            MemorySegment registration = out.get(ValueLayout.ADDRESS, 0);
            AtomicBoolean closed = new AtomicBoolean();
            return () -> {
                if (closed.compareAndSet(false, true)) {
                    release(NcclFunction.COMM_DEREGISTER,
                            communicator -> nccl_h.ncclCommDeregister(communicator, registration));
                }
            };
        }
    }

    /**
     * Registers device memory together with all ranks. Each rank registers its own memory.
     *
     * @param symmetric whether all ranks' windows are the same, so that kernels can reach them directly; {@code memory}
     *                  must then begin at a multiple of 4096
     */
    public NcclWindow registerWindow(MemorySegment memory, boolean symmetric) {
        return NcclWindow.of(this, memory, symmetric ? Set.of(NcclWindow.Flag.SYMMETRIC) : Set.of());
    }

    /**
     * Registers device memory together with all ranks. Each rank registers its own memory.
     *
     * @param flags options of the registration; the same on all ranks
     */
    public NcclWindow registerWindow(MemorySegment memory, Set<NcclWindow.Flag> flags) {
        return NcclWindow.of(this, memory, flags);
    }

    /**
     * Creates the object that kernels need to use NCCL's device functions. All ranks call it with the same
     * requirements.
     *
     * @return the device communicator, laid out for kernels compiled with the headers of the loaded NCCL
     */
    public NcclDeviceCommunicator newDeviceCommunicator(NcclDeviceCommunicator.Requirements requirements) {
        return newDeviceCommunicator(requirements, library.version());
    }

    /**
     * Creates the object that kernels need to use NCCL's device functions. All ranks call it with the same
     * requirements.
     *
     * @param compiledWith {@code NCCL_VERSION_CODE} of the kernels' headers: the loaded NCCL's, or an older release
     *                     that it supports (2.30 supports 2.29)
     * @throws MillraceException if the layout of these headers is unknown, or if the loaded NCCL does not write it
     */
    public NcclDeviceCommunicator newDeviceCommunicator(NcclDeviceCommunicator.Requirements requirements,
            int compiledWith) {
        return NcclDeviceCommunicator.of(this, requirements, compiledWith);
    }

    /**
     * {@return a new reduction that multiplies this rank's elements by a scalar and sums them}
     *
     * @param scalar the factor, rounded to the type: to nearest, ties to even, for floats; towards zero for integers
     */
    public NcclReduction scaledSum(double scalar, DataType type) {
        return NcclReduction.of(this, scalar, type);
    }

    /**
     * Creates a reduction that multiplies this rank's elements by a scalar and sums them.
     *
     * @param scalar   the factor, one element of the type
     * @param onDevice true: the scalar is device memory that is read while an operation runs and must stay valid until
     *                 then; false: it is host memory that is read now
     */
    public NcclReduction scaledSum(MemorySegment scalar, DataType type, boolean onDevice) {
        return NcclReduction.of(this, scalar, type, onDevice);
    }

    // Operations

    /** Returns the reduction that must be created for a call; null if none is necessary. */
    private @Nullable NcclReduction scaled(ReduceOp op, DataType type) {
        return op instanceof ReduceOp.PreMulSum(double scalar) ? scaledSum(scalar, type) : null;
    }

    private int code(ReduceOp op, @Nullable NcclReduction scaled) {
        return op instanceof ReduceOp.BuiltIn builtIn ? builtIn.code() : scaled.code(this, scaled.type());
    }

    /**
     * Reduces all ranks' elements and stores the result on every rank.
     *
     * @param send    {@code count} elements
     * @param receive {@code count} elements; the same memory for an operation in place
     */
    public void allReduce(MemorySegment send, MemorySegment receive, long count, DataType type, ReduceOp op,
            CudaStream stream) {
        try (NcclReduction scaled = scaled(op, type)) {
            allReduce(send, receive, count, type, code(op, scaled), stream);
        }
    }

    /** Does the same with a reduction of this communicator. */
    public void allReduce(MemorySegment send, MemorySegment receive, long count, DataType type, NcclReduction reduction,
            CudaStream stream) {
        allReduce(send, receive, count, type, reduction.code(this, type), stream);
    }

    private void allReduce(MemorySegment send, MemorySegment receive, long count, DataType type, int op,
            CudaStream stream) {
        long bytes = bytes(count, 1, type);
        long from = DeviceSegments.address("send", send, bytes);
        long to = DeviceSegments.address("receive", receive, bytes);
        enqueue(NcclFunction.ALL_REDUCE, stream, 5, from, to, count, type.code(), op, 0);
    }

    /**
     * Reduces all ranks' elements and stores the result on one rank.
     *
     * @param send    {@code count} elements
     * @param receive {@code count} elements at the root, or the same memory as {@code send}; may be null elsewhere
     */
    public void reduce(MemorySegment send, @Nullable MemorySegment receive, long count, DataType type, ReduceOp op,
            int root, CudaStream stream) {
        try (NcclReduction scaled = scaled(op, type)) {
            reduce(send, receive, count, type, code(op, scaled), root, stream);
        }
    }

    /** Does the same with a reduction of this communicator. */
    public void reduce(MemorySegment send, @Nullable MemorySegment receive, long count, DataType type,
            NcclReduction reduction, int root, CudaStream stream) {
        reduce(send, receive, count, type, reduction.code(this, type), root, stream);
    }

    private void reduce(MemorySegment send, @Nullable MemorySegment receive, long count, DataType type, int op,
            int root, CudaStream stream) {
        long bytes = bytes(count, 1, type);
        long from = DeviceSegments.address("send", send, bytes);
        long to = optional("receive", receive, bytes, root);
        enqueue(NcclFunction.REDUCE, stream, 6, from, to, count, type.code(), op, root);
    }

    /**
     * Reduces all ranks' elements and stores on each rank its share of the result.
     *
     * @param send    {@code size() * count} elements
     * @param receive {@code count} elements; for an operation in place, part number {@code rank()} of {@code send}
     * @param count   number of elements of each rank's share
     */
    public void reduceScatter(MemorySegment send, MemorySegment receive, long count, DataType type, ReduceOp op,
            CudaStream stream) {
        try (NcclReduction scaled = scaled(op, type)) {
            reduceScatter(send, receive, count, type, code(op, scaled), stream);
        }
    }

    /** Does the same with a reduction of this communicator. */
    public void reduceScatter(MemorySegment send, MemorySegment receive, long count, DataType type,
            NcclReduction reduction, CudaStream stream) {
        reduceScatter(send, receive, count, type, reduction.code(this, type), stream);
    }

    private void reduceScatter(MemorySegment send, MemorySegment receive, long count, DataType type, int op,
            CudaStream stream) {
        long from = DeviceSegments.address("send", send, bytes(count, size(), type));
        long to = DeviceSegments.address("receive", receive, bytes(count, 1, type));
        enqueue(NcclFunction.REDUCE_SCATTER, stream, 5, from, to, count, type.code(), op, 0);
    }

    /**
     * Sends one rank's elements to every rank.
     *
     * @param send    {@code count} elements at the root; may be null elsewhere
     * @param receive {@code count} elements; may be the same memory
     */
    public void broadcast(@Nullable MemorySegment send, MemorySegment receive, long count, DataType type, int root,
            CudaStream stream) {
        long bytes = bytes(count, 1, type);
        long from = optional("send", send, bytes, root);
        long to = DeviceSegments.address("receive", receive, bytes);
        enqueue(NcclFunction.BROADCAST, stream, 5, from, to, count, type.code(), root, 0);
    }

    /**
     * Sends all ranks' elements to every rank.
     *
     * @param send    {@code count} elements; for an operation in place, part number {@code rank()} of {@code receive}
     * @param receive {@code size() * count} elements, ordered by rank
     */
    public void allGather(MemorySegment send, MemorySegment receive, long count, DataType type, CudaStream stream) {
        long from = DeviceSegments.address("send", send, bytes(count, 1, type));
        long to = DeviceSegments.address("receive", receive, bytes(count, size(), type));
        enqueue(NcclFunction.ALL_GATHER, stream, 4, from, to, count, type.code(), 0, 0);
    }

    /**
     * Exchanges elements between all ranks: part {@code j} of rank {@code i} becomes part {@code i} of rank {@code j}.
     * NCCL 2.28.
     *
     * @param send    {@code size() * count} elements
     * @param receive {@code size() * count} elements; not the same memory
     */
    public void allToAll(MemorySegment send, MemorySegment receive, long count, DataType type, CudaStream stream) {
        library.require(NcclFunction.ALL_TO_ALL);
        long bytes = bytes(count, size(), type);
        long from = DeviceSegments.address("send", send, bytes);
        long to = DeviceSegments.address("receive", receive, bytes);
        enqueue(NcclFunction.ALL_TO_ALL, stream, 4, from, to, count, type.code(), 0, 0);
    }

    /**
     * Sends all ranks' elements to one rank. NCCL 2.28.
     *
     * @param send    {@code count} elements
     * @param receive {@code size() * count} elements at the root, ordered by rank; may be null elsewhere
     */
    public void gather(MemorySegment send, @Nullable MemorySegment receive, long count, DataType type, int root,
            CudaStream stream) {
        library.require(NcclFunction.GATHER);
        long from = DeviceSegments.address("send", send, bytes(count, 1, type));
        long to = optional("receive", receive, bytes(count, size(), type), root);
        enqueue(NcclFunction.GATHER, stream, 5, from, to, count, type.code(), root, 0);
    }

    /**
     * Sends each rank its part of one rank's elements. NCCL 2.28.
     *
     * @param send    {@code size() * count} elements at the root, ordered by rank; may be null elsewhere
     * @param receive {@code count} elements
     */
    public void scatter(@Nullable MemorySegment send, MemorySegment receive, long count, DataType type, int root,
            CudaStream stream) {
        library.require(NcclFunction.SCATTER);
        long from = optional("send", send, bytes(count, size(), type), root);
        long to = DeviceSegments.address("receive", receive, bytes(count, 1, type));
        enqueue(NcclFunction.SCATTER, stream, 5, from, to, count, type.code(), root, 0);
    }

    /**
     * Sends elements to one rank, which receives the same number. Several sends and receives that depend on each other
     * belong into one group.
     */
    public void send(MemorySegment buffer, long count, DataType type, int peer, CudaStream stream) {
        library.require(NcclFunction.SEND);
        long from = DeviceSegments.address("buffer", buffer, bytes(count, 1, type));
        enqueue(NcclFunction.SEND, stream, 4, from, count, type.code(), peer, 0, 0);
    }

    /** Receives elements from one rank, which sends the same number. */
    public void receive(MemorySegment buffer, long count, DataType type, int peer, CudaStream stream) {
        library.require(NcclFunction.RECV);
        long to = DeviceSegments.address("buffer", buffer, bytes(count, 1, type));
        enqueue(NcclFunction.RECV, stream, 4, to, count, type.code(), peer, 0, 0);
    }

    /**
     * Enqueues a function with the communicator and the stream as last arguments. Arguments are plain numbers, because
     * every call would otherwise allocate a segment of 40 bytes for each operand.
     *
     * @param arguments number of arguments before the last two: 4, 5 or 6
     */
    private void enqueue(NcclFunction function, CudaStream stream, int arguments, long first, long second, long third,
            long fourth, long fifth, long sixth) {
        CFunction called = library.plain(function);
        MemorySegment communicator = enter(stream);
        try {
            long own = communicator.address();
            long queue = stream.handle().address().address();
            settle(function, communicator, (int) switch (arguments) {
                case 4 -> called.call(first, second, third, fourth, own, queue);
                case 5 -> called.call(first, second, third, fourth, fifth, own, queue, 0, 0);
                default -> called.call(first, second, third, fourth, fifth, sixth, own, queue, 0);
            });
        } finally {
            exit(stream);
        }
    }

    // Puts and signals

    /**
     * Writes elements into a window of a peer, and then signals the peer.
     *
     * @param buffer  {@code count} elements
     * @param window  the window, as this rank registered its part
     * @param offset  target offset in the peer's part, in bytes
     * @param context the context, 0 or more, below {@link NcclConfig.Option#RMA_CONTEXTS}
     * @throws IllegalArgumentException if the buffer is too small, closed or in the Java heap, or the window belongs to
     *                                  another communicator
     */
    public void putSignal(MemorySegment buffer, long count, DataType type, int peer, NcclWindow window, long offset,
            int signal, int context, CudaStream stream) {
        library.require(NcclFunction.PUT_SIGNAL);
        MemorySegment from = DeviceSegments.pointer("buffer", buffer, bytes(count, 1, type));
        MemorySegment there = MemorySegment.ofAddress(window.addressFor(this));
        if (offset < 0) {
            throw new IllegalArgumentException("a put at offset " + offset + " of a window: offsets are 0 or more");
        }
        enqueue(NcclFunction.PUT_SIGNAL, stream, (communicator, queue) -> nccl_h.ncclPutSignal(from, count, type.code(),
                peer, there, offset, signal, context, NO_FLAGS, communicator, queue));
    }

    /**
     * Signals a peer.
     *
     * @param context the context, 0 or more
     */
    public void signal(int peer, int signal, int context, CudaStream stream) {
        library.require(NcclFunction.SIGNAL);
        enqueue(NcclFunction.SIGNAL, stream,
                (communicator, queue) -> nccl_h.ncclSignal(peer, signal, context, NO_FLAGS, communicator, queue));
    }

    /** Makes the later work of the stream wait for signals. */
    public void waitSignals(List<Awaited> signals, CudaStream stream) {
        library.require(NcclFunction.WAIT_SIGNAL);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment array = ncclWaitSignalDesc_t.allocateArray(signals.size(), arena);
            for (int i = 0; i < signals.size(); i++) {
                Awaited awaited = signals.get(i);
                MemorySegment each = ncclWaitSignalDesc_t.asSlice(array, i);
                ncclWaitSignalDesc_t.opCnt(each, awaited.count);
                ncclWaitSignalDesc_t.peer(each, awaited.peer);
                ncclWaitSignalDesc_t.sigIdx(each, awaited.signal);
                ncclWaitSignalDesc_t.ctx(each, awaited.context);
            }
            enqueue(NcclFunction.WAIT_SIGNAL, stream,
                    (communicator, queue) -> nccl_h.ncclWaitSignal(signals.size(), array, communicator, queue));
        }
    }

    private void enqueue(NcclFunction function, CudaStream stream, ToIntBiFunction<MemorySegment, MemorySegment> call) {
        MemorySegment communicator = enter(stream);
        try {
            settle(function, communicator, call.applyAsInt(communicator, stream.handle().address()));
        } finally {
            exit(stream);
        }
    }

    // Calls and teardown

    /** {@return the GPU of this rank} */
    public CudaDevice device() {
        return device;
    }

    /** {@return this rank's number: 0 to {@code size() - 1}} */
    public int rank() {
        if (rank < 0) {
            rank = query(NcclFunction.COMM_USER_RANK,
                    (communicator, out) -> nccl_h.ncclCommUserRank(communicator, out));
        }
        return rank;
    }

    /** {@return the number of ranks: 1 or more} */
    public int size() {
        if (size < 0) {
            size = query(NcclFunction.COMM_COUNT, (communicator, out) -> nccl_h.ncclCommCount(communicator, out));
        }
        return size;
    }

    /** A call that writes an int. */
    interface Query {
        int call(MemorySegment communicator, MemorySegment out);
    }

    int query(NcclFunction function, Query query) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.JAVA_INT);
            enter(function, communicator -> query.call(communicator, out));
            return out.get(ValueLayout.JAVA_INT, 0);
        }
    }

    /** Makes a call and throws if it fails. */
    void enter(NcclFunction function, ToIntFunction<MemorySegment> call) {
        MemorySegment communicator = handle.enter();
        try {
            settle(function, communicator, call.applyAsInt(communicator));
        } finally {
            handle.exit();
        }
    }

    /** Releases an object of this communicator. Objects that are not released before end with the communicator. */
    void release(NcclFunction function, ToIntFunction<MemorySegment> call) {
        MemorySegment communicator;
        try {
            communicator = handle.enter();
        } catch (IllegalStateException gone) {
            return;
        }
        try {
            library.checkRelease(function, call.applyAsInt(communicator));
        } finally {
            handle.exit();
        }
    }

    /** Throws if a call failed. Records that the communicator is non-blocking if the call is still in progress. */
    private void settle(NcclFunction function, MemorySegment communicator, int code) {
        if (code != nccl_h.ncclSuccess()) {
            if (code != nccl_h.ncclInProgress()) {
                throw library.failure(function, where(), communicator, code);
            }
            nonBlocking = true;
        }
    }

    /** Describes this rank with the information that is known without another query of NCCL. */
    private String where() {
        return (rank < 0 ? "" : "rank " + rank + (size < 0 ? "" : " of " + size) + ", ") + device;
    }

    /** Begins a call on this communicator and a stream. {@link #exit} ends it. */
    private MemorySegment enter(CudaStream stream) {
        MemorySegment communicator = handle.enter();
        try {
            stream.handle().enter();
        } catch (IllegalStateException closedStream) {
            handle.exit();
            throw closedStream;
        }
        return communicator;
    }

    private void exit(CudaStream stream) {
        stream.handle().exit();
        handle.exit();
    }

    /** Returns the address of an operand that only the root must have; 0 if it is absent. */
    private long optional(String role, @Nullable MemorySegment segment, long bytes, int root) {
        boolean absent = segment == null || segment.address() == 0;
        return absent && rank() != root ? 0
                : DeviceSegments.address(role, segment == null ? MemorySegment.NULL : segment, bytes);
    }

    private static long bytes(long count, int ranks, DataType type) {
        long each = (long) ranks * type.bytes();
        long bytes = count * each;
        if (count < 0 || bytes < 0 || Math.multiplyHigh(count, each) != 0) {
            throw new IllegalArgumentException(
                    "a count of " + count + " " + type.label() + " elements: counts are 0 to " + Long.MAX_VALUE / each);
        }
        return bytes;
    }

    /**
     * Abandons every operation and the communicator. A call of another thread that is stuck in NCCL has 0.2 s to leave.
     * After that, the communicator is freed in any case. All ranks should abort, because operations of ranks that do
     * not may never end.
     */
    public void abort() {
        aborting.set(true);
        handle.closeWithin(ABORT_GRACE_NANOS);
    }

    /**
     * Waits for the operations in progress and leaves the communicator. A non-blocking communicator is aborted after a
     * wait of 60 s. If another thread is in a call, the communicator is destroyed when that call returns.
     */
    @Override
    public void close() {
        if (nonBlocking && !handle.isClosed() && handle.isMade() && library.library().has(NcclFunction.COMM_FINALIZE)) {
            try {
                awaitReady(CLOSE_DEADLINE);
                if (ending.compareAndSet(false, true)) {
                    enter(NcclFunction.COMM_FINALIZE, nccl_h::ncclCommFinalize);
                    awaitReady(CLOSE_DEADLINE);
                }
            } catch (MillraceException failedOrLate) {
                // A communicator that failed or is still working cannot be destroyed. Only abort frees it.
                abort();
            } catch (IllegalStateException closedMeanwhile) {
                return;
            }
        }
        handle.close();
    }

    @Override
    public String toString() {
        return handle + " (" + where() + ")";
    }
}
