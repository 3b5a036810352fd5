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
 * A method for an operation enqueues the operation in a stream of the communicator's device and returns. With a
 * non-blocking communicator, NCCL may still work on a call when the method has returned. {@link #awaitReady} must then
 * precede the next call. A count is a number of elements. An operand is device memory, or pinned host memory that is
 * given by its device address. The methods allocate nothing, except for a {@link ReduceOp.PreMulSum}: its reduction is
 * created for the call and destroyed after it.
 *
 * <p>
 * Each method throws {@link NcclException} if NCCL refuses the call. It throws {@link IllegalArgumentException} if an
 * operand is too small, closed or in the Java heap. It throws {@link IllegalStateException} if the communicator or the
 * stream is closed.
 *
 * <p>
 * Only one thread at a time may use a communicator. {@link #abort()} and {@link #close()} are safe from any thread, at
 * any time, more than once.
 */
public final class NcclCommunicator implements AutoCloseable {

    /** Maximum time that {@link #abort()} waits until calls of other threads return, in nanoseconds. */
    private static final long ABORT_GRACE_NANOS = 200_000_000;
    /** Rank argument of {@code ncclCommGrow} for a rank that already belongs to the communicator. */
    private static final int EXISTING_RANK = -1;
    private static final Duration CLOSE_DEADLINE = Duration.ofSeconds(60);

    /** Value of the {@code flags} argument of NCCL's put and signal functions. NCCL defines no flags yet. */
    private static final int NO_FLAGS = 0;

    final NcclLibrary library;
    final CudaDevice device;
    final NativeHandle handle;
    /**
     * Whether calls can return before their work is complete. Set by the options, or by the first call that returns "in
     * progress".
     */
    volatile boolean nonBlocking;
    /** Rank of this end, and number of ranks. Each is negative until this object has queried NCCL. */
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
     * Number of signals of one peer. A stream can wait until they have arrived.
     *
     * @param count   number of signals, 1 or more
     * @param peer    rank of the peer
     * @param signal  number of the signal, which the peer passes to {@link #signal} or {@link #putSignal}
     * @param context number of the context, which the peer passes together with the number of the signal
     */
    public record Awaited(int count, int peer, int signal, int context) {
    }

    /** {@return CUDA's number of this rank's GPU in this process} */
    public int cudaDevice() {
        return query(NcclFunction.COMM_CU_DEVICE, (communicator, out) -> nccl_h.ncclCommCuDevice(communicator, out));
    }

    /**
     * {@return the state of the communicator: success, in progress, or the error of the first operation that failed;
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
     * Waits until NCCL has completed the last call on a non-blocking communicator.
     *
     * @param deadline maximum time to wait
     * @throws NcclException     if the last call failed
     * @throws MillraceException if the last call was not complete in time
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
     * Splits the communicator: the ranks that pass the same color form a new communicator. All ranks must call this
     * method.
     *
     * @param color  0 or more; negative if this rank shall not belong to a new communicator
     *               ({@code NCCL_SPLIT_NOCOLOR})
     * @param key    position among the ranks of the same color; ranks with equal keys keep their present order
     * @param config options; null for the options of this communicator
     * @return the new communicator; empty for a negative color. In a group, or if this communicator is non-blocking,
     *         the new communicator can be used after the group has ended and {@link #awaitReady} has returned.
     */
    public Optional<NcclCommunicator> split(int color, int key, @Nullable NcclConfig config) {
        library.require(NcclFunction.COMM_SPLIT);
        int colour = color < 0 ? nccl_h.NCCL_SPLIT_NOCOLOR() : color;
        NcclCommunicator child = child(config, NcclFunction.COMM_SPLIT,
                (communicator, out, options) -> nccl_h.ncclCommSplit(communicator, colour, key, out, options));
        return color < 0 ? Optional.empty() : Optional.of(child);
    }

    /**
     * Creates a new communicator without some ranks. All ranks except the excluded ranks must call this method.
     *
     * @param excluded excluded ranks
     * @param abort    whether operations in progress are aborted first, for example after an error; if false, the
     *                 caller must have waited until they are complete
     * @param config   options; null for the options of this communicator
     * @return the new communicator; it can be used under the same conditions as the result of {@link #split}
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
        // NCCL may write the new communicator's address long after the call has returned, so the memory for it is
        // never freed.
        MemorySegment slot = Arena.global().allocate(ValueLayout.ADDRESS);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment options = config == null ? MemorySegment.NULL : config.write(arena, library);
            enter(function, communicator -> call.call(communicator, slot, options));
        }
        return new NcclCommunicator(library, device, slot, this, -1, -1,
                config == null ? nonBlocking : config.isNonBlocking(), new AtomicBoolean());
    }

    /**
     * Creates an id for ranks that will join this communicator. One rank creates the id, passes it to {@link #grow},
     * and sends it to the new ranks. The new ranks pass the id to {@link NcclLibrary#joinGrowing}. Requires NCCL 2.29.
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
     * Creates a new communicator from the ranks of this communicator and new ranks. The ranks of this communicator keep
     * their numbers. All of them must call this method, while the new ranks call {@link NcclLibrary#joinGrowing}.
     * Requires NCCL 2.29.
     *
     * @param newSize number of ranks of the new communicator; more than {@link #size()}
     * @param id      id from {@link #newUniqueId} on the rank that created it; null on all other ranks
     * @param config  options; null for the options of this communicator
     * @return the new communicator; it can be used under the same conditions as the result of {@link #split}
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

    /** {@return the GPU memory that NCCL itself uses for this communicator; requires NCCL 2.29.7} */
    public NcclMemory memory() {
        return new NcclMemory(this);
    }

    /** {@return NCCL's properties of this communicator; requires NCCL 2.29.7} */
    public NcclProperties properties() {
        return NcclProperties.of(this);
    }

    /** Stops the operations in progress. The communicator can then be split, shrunk or closed. Requires NCCL 2.28.7. */
    public void revoke() {
        library.require(NcclFunction.COMM_REVOKE);
        enter(NcclFunction.COMM_REVOKE,
                communicator -> nccl_h.ncclCommRevoke(communicator, nccl_h.NCCL_REVOKE_DEFAULT()));
    }

    /**
     * Flushes the operations in progress, so that they complete. Afterwards the communicator can only be closed.
     * {@link #close()} does the same if the communicator is non-blocking.
     */
    public void finish() {
        library.require(NcclFunction.COMM_FINALIZE);
        ending.set(true);
        enter(NcclFunction.COMM_FINALIZE, nccl_h::ncclCommFinalize);
    }

    /**
     * Registers device memory with NCCL, so that NCCL can use the memory in place.
     *
     * @return object that ends the registration when it is closed
     */
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
     * Registers device memory as a window of this communicator. All ranks must call this method, each with its own
     * memory.
     *
     * @param symmetric whether all ranks register memory of the same size and layout, so that kernels can access it
     *                  directly; {@code memory} must then begin at a multiple of 4096
     */
    public NcclWindow registerWindow(MemorySegment memory, boolean symmetric) {
        return NcclWindow.of(this, memory, symmetric ? Set.of(NcclWindow.Flag.SYMMETRIC) : Set.of());
    }

    /**
     * Registers device memory as a window of this communicator. All ranks must call this method, each with its own
     * memory.
     *
     * @param flags options of the registration; the same on all ranks
     */
    public NcclWindow registerWindow(MemorySegment memory, Set<NcclWindow.Flag> flags) {
        return NcclWindow.of(this, memory, flags);
    }

    /**
     * Creates the object that kernels need for NCCL's device functions. All ranks must call this method with the same
     * requirements.
     *
     * @return the device communicator, in the layout for kernels that were compiled with the headers of the loaded NCCL
     */
    public NcclDeviceCommunicator newDeviceCommunicator(NcclDeviceCommunicator.Requirements requirements) {
        return newDeviceCommunicator(requirements, library.version());
    }

    /**
     * Creates the object that kernels need for NCCL's device functions. All ranks must call this method with the same
     * requirements.
     *
     * @param compiledWith {@code NCCL_VERSION_CODE} of the kernels' headers: the release of the loaded NCCL, or an
     *                     older release that it supports (2.30 supports 2.29)
     * @throws MillraceException if the headers' layout is unknown, or if the loaded NCCL does not write this layout
     */
    public NcclDeviceCommunicator newDeviceCommunicator(NcclDeviceCommunicator.Requirements requirements,
            int compiledWith) {
        return NcclDeviceCommunicator.of(this, requirements, compiledWith);
    }

    /**
     * {@return a new reduction that sums the elements of all ranks after it has multiplied this rank's elements by a
     * scalar}
     *
     * @param scalar factor of this rank. It is rounded to the type: floats to nearest, ties to even; integers towards
     *               zero.
     */
    public NcclReduction scaledSum(double scalar, DataType type) {
        return NcclReduction.of(this, scalar, type);
    }

    /**
     * Creates a reduction that sums the elements of all ranks after it has multiplied this rank's elements by a scalar.
     *
     * @param scalar   factor of this rank: memory with one element of the type
     * @param onDevice true if the scalar is in device memory. Operations read the scalar while they run, so the scalar
     *                 must stay valid until these operations are complete. False if the scalar is in host memory; this
     *                 call reads the scalar.
     */
    public NcclReduction scaledSum(MemorySegment scalar, DataType type, boolean onDevice) {
        return NcclReduction.of(this, scalar, type, onDevice);
    }

    /**
     * Creates the reduction for a {@link ReduceOp.PreMulSum}; the caller closes this reduction after the call of NCCL.
     * Returns null for other reductions.
     */
    private @Nullable NcclReduction scaled(ReduceOp op, DataType type) {
        return op instanceof ReduceOp.PreMulSum(double scalar) ? scaledSum(scalar, type) : null;
    }

    private int code(ReduceOp op, @Nullable NcclReduction scaled) {
        return op instanceof ReduceOp.BuiltIn builtIn ? builtIn.code() : scaled.code(this, scaled.type());
    }

    /**
     * Reduces the elements of all ranks and stores the result on every rank.
     *
     * @param send    memory of {@code count} elements
     * @param receive memory of {@code count} elements; the same memory as {@code send} for an operation in place
     */
    public void allReduce(MemorySegment send, MemorySegment receive, long count, DataType type, ReduceOp op,
            CudaStream stream) {
        try (NcclReduction scaled = scaled(op, type)) {
            allReduce(send, receive, count, type, code(op, scaled), stream);
        }
    }

    /**
     * Reduces the elements of all ranks with a {@link NcclReduction} of this communicator, and stores the result on
     * every rank.
     */
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
     * Reduces the elements of all ranks and stores the result on the root.
     *
     * @param send    memory of {@code count} elements
     * @param receive at the root, memory of {@code count} elements, which may be the memory of {@code send}; may be
     *                null on other ranks
     */
    public void reduce(MemorySegment send, @Nullable MemorySegment receive, long count, DataType type, ReduceOp op,
            int root, CudaStream stream) {
        try (NcclReduction scaled = scaled(op, type)) {
            reduce(send, receive, count, type, code(op, scaled), root, stream);
        }
    }

    /**
     * Reduces the elements of all ranks with a {@link NcclReduction} of this communicator, and stores the result on the
     * root.
     */
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
     * Reduces the elements of all ranks and stores a different part of the result on each rank.
     *
     * @param send    memory of {@code size() * count} elements
     * @param receive memory of {@code count} elements; for an operation in place, part number {@code rank()} of
     *                {@code send}
     * @param count   number of elements of each rank's part
     */
    public void reduceScatter(MemorySegment send, MemorySegment receive, long count, DataType type, ReduceOp op,
            CudaStream stream) {
        try (NcclReduction scaled = scaled(op, type)) {
            reduceScatter(send, receive, count, type, code(op, scaled), stream);
        }
    }

    /**
     * Reduces the elements of all ranks with a reduction of this communicator. Stores a different part of the result on
     * each rank.
     */
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
     * Sends the root's elements to every rank.
     *
     * @param send    at the root, memory of {@code count} elements; may be null on other ranks
     * @param receive memory of {@code count} elements; may be the memory of {@code send}
     */
    public void broadcast(@Nullable MemorySegment send, MemorySegment receive, long count, DataType type, int root,
            CudaStream stream) {
        long bytes = bytes(count, 1, type);
        long from = optional("send", send, bytes, root);
        long to = DeviceSegments.address("receive", receive, bytes);
        enqueue(NcclFunction.BROADCAST, stream, 5, from, to, count, type.code(), root, 0);
    }

    /**
     * Sends the elements of all ranks to every rank.
     *
     * @param send    memory of {@code count} elements; for an operation in place, part number {@code rank()} of
     *                {@code receive}
     * @param receive memory of {@code size() * count} elements, which are ordered by rank
     */
    public void allGather(MemorySegment send, MemorySegment receive, long count, DataType type, CudaStream stream) {
        long from = DeviceSegments.address("send", send, bytes(count, 1, type));
        long to = DeviceSegments.address("receive", receive, bytes(count, size(), type));
        enqueue(NcclFunction.ALL_GATHER, stream, 4, from, to, count, type.code(), 0, 0);
    }

    /**
     * Exchanges elements between all ranks: part {@code j} of rank {@code i} becomes part {@code i} of rank {@code j}.
     * Requires NCCL 2.28.
     *
     * @param send    memory of {@code size() * count} elements
     * @param receive memory of {@code size() * count} elements, other than the memory of {@code send}
     */
    public void allToAll(MemorySegment send, MemorySegment receive, long count, DataType type, CudaStream stream) {
        library.require(NcclFunction.ALL_TO_ALL);
        long bytes = bytes(count, size(), type);
        long from = DeviceSegments.address("send", send, bytes);
        long to = DeviceSegments.address("receive", receive, bytes);
        enqueue(NcclFunction.ALL_TO_ALL, stream, 4, from, to, count, type.code(), 0, 0);
    }

    /**
     * Sends the elements of all ranks to the root. Requires NCCL 2.28.
     *
     * @param send    memory of {@code count} elements
     * @param receive at the root, memory of {@code size() * count} elements, which are ordered by rank; may be null on
     *                other ranks
     */
    public void gather(MemorySegment send, @Nullable MemorySegment receive, long count, DataType type, int root,
            CudaStream stream) {
        library.require(NcclFunction.GATHER);
        long from = DeviceSegments.address("send", send, bytes(count, 1, type));
        long to = optional("receive", receive, bytes(count, size(), type), root);
        enqueue(NcclFunction.GATHER, stream, 5, from, to, count, type.code(), root, 0);
    }

    /**
     * Sends each rank its part of the root's elements. Requires NCCL 2.28.
     *
     * @param send    at the root, memory of {@code size() * count} elements, which are ordered by rank; may be null on
     *                other ranks
     * @param receive memory of {@code count} elements
     */
    public void scatter(@Nullable MemorySegment send, MemorySegment receive, long count, DataType type, int root,
            CudaStream stream) {
        library.require(NcclFunction.SCATTER);
        long from = optional("send", send, bytes(count, size(), type), root);
        long to = DeviceSegments.address("receive", receive, bytes(count, 1, type));
        enqueue(NcclFunction.SCATTER, stream, 5, from, to, count, type.code(), root, 0);
    }

    /**
     * Sends elements to a peer, which must receive the same number of elements. Several sends and receives that depend
     * on each other must belong to one group ({@link NcclLibrary#group()}).
     */
    public void send(MemorySegment buffer, long count, DataType type, int peer, CudaStream stream) {
        library.require(NcclFunction.SEND);
        long from = DeviceSegments.address("buffer", buffer, bytes(count, 1, type));
        enqueue(NcclFunction.SEND, stream, 4, from, count, type.code(), peer, 0, 0);
    }

    /** Receives elements from a peer, which must send the same number of elements. */
    public void receive(MemorySegment buffer, long count, DataType type, int peer, CudaStream stream) {
        library.require(NcclFunction.RECV);
        long to = DeviceSegments.address("buffer", buffer, bytes(count, 1, type));
        enqueue(NcclFunction.RECV, stream, 4, to, count, type.code(), peer, 0, 0);
    }

    /**
     * Calls a function of NCCL that enqueues an operation. The communicator and the stream are its last arguments.
     * Operands are passed as plain numbers, because a segment of 40 bytes would otherwise be allocated for each
     * operand.
     *
     * @param arguments number of arguments before the communicator and the stream: 4, 5 or 6
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

    /**
     * Writes elements into a window of a peer, and then changes a signal of the peer.
     *
     * @param buffer  memory of {@code count} elements
     * @param window  object that this rank got when the window was registered
     * @param offset  target offset in the peer's part of the window, in bytes
     * @param signal  number of the signal
     * @param context number of the context, 0 or more, less than {@link NcclConfig.Option#RMA_CONTEXTS}
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
     * Changes a signal of a peer.
     *
     * @param signal  number of the signal
     * @param context number of the context, 0 or more
     */
    public void signal(int peer, int signal, int context, CudaStream stream) {
        library.require(NcclFunction.SIGNAL);
        enqueue(NcclFunction.SIGNAL, stream,
                (communicator, queue) -> nccl_h.ncclSignal(peer, signal, context, NO_FLAGS, communicator, queue));
    }

    /** Enqueues work that waits for signals. Later work of the stream runs after all these signals have arrived. */
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

    /** {@return the number of ranks of the communicator: 1 or more} */
    public int size() {
        if (size < 0) {
            size = query(NcclFunction.COMM_COUNT, (communicator, out) -> nccl_h.ncclCommCount(communicator, out));
        }
        return size;
    }

    /** A function of NCCL that stores a property of a communicator as an int. */
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

    /** Calls a function of NCCL with the communicator. Throws if the function fails. */
    void enter(NcclFunction function, ToIntFunction<MemorySegment> call) {
        MemorySegment communicator = handle.enter();
        try {
            settle(function, communicator, call.applyAsInt(communicator));
        } finally {
            handle.exit();
        }
    }

    /**
     * Calls a function of NCCL that releases an object of this communicator. Does nothing if the communicator is
     * closed, because NCCL then has released the object with the communicator.
     */
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

    /**
     * Throws if a function has failed. Records that the communicator is non-blocking if the function returned "in
     * progress".
     */
    private void settle(NcclFunction function, MemorySegment communicator, int code) {
        if (code != nccl_h.ncclSuccess()) {
            if (code != nccl_h.ncclInProgress()) {
                throw library.failure(function, where(), communicator, code);
            }
            nonBlocking = true;
        }
    }

    /** Describes this rank for a message. Uses only values that are already known, and does not query NCCL. */
    private String where() {
        return (rank < 0 ? "" : "rank " + rank + (size < 0 ? "" : " of " + size) + ", ") + device;
    }

    /**
     * Marks this communicator and a stream as used by one call of NCCL, so that neither is destroyed during the call.
     * Returns the communicator's handle. The caller must call {@link #exit} after the call of NCCL.
     */
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

    /**
     * Returns the address of an operand that only the root needs. Returns 0 if the operand is null and this rank is not
     * the root.
     */
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
     * Aborts every operation and frees the communicator. If another thread is in a call of NCCL, waits at most 0.2 s
     * for the return of that call. Then the communicator is freed, even if the call has not returned. All ranks should
     * abort. Otherwise operations of the remaining ranks could wait forever.
     */
    public void abort() {
        aborting.set(true);
        handle.closeWithin(ABORT_GRACE_NANOS);
    }

    /**
     * Waits for the operations in progress and frees the communicator. A non-blocking communicator is aborted if it is
     * not ready within 60 s. If another thread is in a call, the communicator is destroyed when that call returns.
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
                // A communicator that failed or is still busy cannot be destroyed. Only an abort frees it.
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
