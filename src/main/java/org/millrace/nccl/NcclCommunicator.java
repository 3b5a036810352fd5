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
 * One rank's end of an NCCL communicator, from {@link NcclLibrary#join} or made from another one.
 *
 * <p>
 * An operation enqueues to a stream of the communicator's device and returns; with a communicator that does not block
 * it may go on after that, so that {@link #awaitReady} comes before the next call. Counts are elements. Operands are
 * device memory, or pinned host memory as the device sees it. Nothing is allocated on the way, unless it is a
 * {@link ReduceOp.PreMulSum}, which is made for the call and taken back after it. All of them throw
 * {@link NcclException} if NCCL refuses, {@link IllegalArgumentException} if an operand is too small, closed or in the
 * Java heap, and {@link IllegalStateException} if the communicator or the stream is closed.
 *
 * <p>
 * One thread at a time may use it; {@link #abort()} and {@link #close()} are safe from any thread at any moment, more
 * than once. A call on a closed communicator is an {@link IllegalStateException}.
 */
public final class NcclCommunicator implements AutoCloseable {

    /** How long {@link #abort()} lets calls of other threads leave by themselves before it goes ahead. */
    private static final long ABORT_GRACE_NANOS = 200_000_000;
    /** What a rank of a communicator that grows gives for its number. */
    private static final int EXISTING_RANK = -1;
    private static final Duration CLOSE_DEADLINE = Duration.ofSeconds(60);

    /** {@code flags} of NCCL's functions: there are none yet. */
    private static final int NO_FLAGS = 0;

    final NcclLibrary library;
    final CudaDevice device;
    final NativeHandle handle;
    /** Also set by the first call that goes on by itself. */
    volatile boolean nonBlocking;
    /** Less than 0 until NCCL was asked, as {@link #size}. */
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
     * Signals of one peer that are waited for.
     *
     * @param count   how many, 1 or more
     * @param signal  their number, as the peer gives it
     * @param context their context, as the peer gives it
     */
    public record Awaited(int count, int peer, int signal, int context) {
    }

    /** {@return the number that CUDA gives this rank's GPU in this process} */
    public int cudaDevice() {
        return query(NcclFunction.COMM_CU_DEVICE, (communicator, out) -> nccl_h.ncclCommCuDevice(communicator, out));
    }

    /**
     * {@return what became of the operations so far: success, in progress, or the error with which one of them failed;
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
     * Waits until a communicator that does not block is done with its last call.
     *
     * @param deadline how long at the most
     * @throws NcclException     if that call failed
     * @throws MillraceException if it was not done in time
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
     * Splits the communicator: ranks of one colour get a new one together. All ranks call it.
     *
     * @param color  0 or more; negative for a rank that gets none ({@code NCCL_SPLIT_NOCOLOR})
     * @param key    orders the ranks of a colour; ties keep their order
     * @param config options; null for this communicator's
     * @return the new one; empty for a negative colour. In a group, or if this one does not block, it can be used once
     *         the group has ended and {@link #awaitReady} has returned
     */
    public Optional<NcclCommunicator> split(int color, int key, @Nullable NcclConfig config) {
        library.require(NcclFunction.COMM_SPLIT);
        int colour = color < 0 ? nccl_h.NCCL_SPLIT_NOCOLOR() : color;
        NcclCommunicator child = child(config, NcclFunction.COMM_SPLIT,
                (communicator, out, options) -> nccl_h.ncclCommSplit(communicator, colour, key, out, options));
        return color < 0 ? Optional.empty() : Optional.of(child);
    }

    /**
     * Makes a new communicator without some ranks. All ranks but those call it.
     *
     * @param abort  whether operations under way are given up first, as after an error; else they must have completed
     * @param config options; null for this communicator's
     * @return the new one; usable as after {@link #split}
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
        // NCCL may write the new communicator long after the call has returned, so its place is never freed.
        MemorySegment slot = Arena.global().allocate(ValueLayout.ADDRESS);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment options = config == null ? MemorySegment.NULL : config.write(arena, library);
            enter(function, communicator -> call.call(communicator, slot, options));
        }
        return new NcclCommunicator(library, device, slot, this, -1, -1,
                config == null ? nonBlocking : config.isNonBlocking(), new AtomicBoolean());
    }

    /**
     * Draws an id for ranks that are to join this communicator: one rank does, gives it to {@link #grow} and hands it
     * to the new ranks, which give it to {@link NcclLibrary#joinGrowing}. NCCL 2.29.
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
     * Makes a new communicator of this one's ranks, which keep their numbers, and new ones. All ranks call it, while
     * the new ones call {@link NcclLibrary#joinGrowing}. NCCL 2.29.
     *
     * @param newSize number of ranks that it will have; more than {@link #size()}
     * @param id      for the rank that drew it; null for all others
     * @param config  options; null for this communicator's
     * @return the new one; usable as after {@link #split}
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

    /** {@return what NCCL itself takes of the GPU's memory for this communicator; NCCL 2.29.7} */
    public NcclMemory memory() {
        return new NcclMemory(this);
    }

    /** {@return what NCCL tells of this communicator; NCCL 2.29.7} */
    public NcclProperties properties() {
        return NcclProperties.of(this);
    }

    /** Stops the operations under way, so that the communicator can be split, shrunk or closed. NCCL 2.28.7. */
    public void revoke() {
        library.require(NcclFunction.COMM_REVOKE);
        enter(NcclFunction.COMM_REVOKE,
                communicator -> nccl_h.ncclCommRevoke(communicator, nccl_h.NCCL_REVOKE_DEFAULT()));
    }

    /**
     * Flushes the operations under way; afterwards the communicator can only be closed. {@link #close()} does it where
     * it is needed.
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
     * Registers device memory with all ranks together, each its own.
     *
     * @param symmetric whether all ranks' windows are the same, so that kernels can reach them directly; {@code memory}
     *                  begins at a multiple of 4096 then
     */
    public NcclWindow registerWindow(MemorySegment memory, boolean symmetric) {
        return NcclWindow.of(this, memory, symmetric ? Set.of(NcclWindow.Flag.SYMMETRIC) : Set.of());
    }

    /**
     * Registers device memory with all ranks together, each its own.
     *
     * @param flags how; the same on all ranks
     */
    public NcclWindow registerWindow(MemorySegment memory, Set<NcclWindow.Flag> flags) {
        return NcclWindow.of(this, memory, flags);
    }

    /**
     * Makes what kernels need to use NCCL's device functions. All ranks call it with the same requirements.
     *
     * @return the device communicator, laid out for kernels compiled with the headers of the loaded NCCL
     */
    public NcclDeviceCommunicator newDeviceCommunicator(NcclDeviceCommunicator.Requirements requirements) {
        return newDeviceCommunicator(requirements, library.version());
    }

    /**
     * Makes what kernels need to use NCCL's device functions. All ranks call it with the same requirements.
     *
     * @param compiledWith {@code NCCL_VERSION_CODE} of the kernels' headers: the loaded NCCL's, or an older release's
     *                     that it serves (2.30 serves 2.29)
     * @throws MillraceException if the layout of these headers is not known, or not the loaded NCCL's to write
     */
    public NcclDeviceCommunicator newDeviceCommunicator(NcclDeviceCommunicator.Requirements requirements,
            int compiledWith) {
        return NcclDeviceCommunicator.of(this, requirements, compiledWith);
    }

    /**
     * {@return a new reduction that multiplies this rank's elements by a scalar and sums them}
     *
     * @param scalar the factor, rounded to the type; to nearest, ties to even, for floats, towards zero for integers
     */
    public NcclReduction scaledSum(double scalar, DataType type) {
        return NcclReduction.of(this, scalar, type);
    }

    /**
     * Makes a reduction that multiplies this rank's elements by a scalar and sums them.
     *
     * @param scalar   the factor, one element of the type
     * @param onDevice true: the scalar is device memory, read while an operation runs, and must stay until then. False:
     *                 it is host memory, read now
     */
    public NcclReduction scaledSum(MemorySegment scalar, DataType type, boolean onDevice) {
        return NcclReduction.of(this, scalar, type, onDevice);
    }

    // Operations

    /** The reduction that has to be made for a call, if there is one. */
    private @Nullable NcclReduction scaled(ReduceOp op, DataType type) {
        return op instanceof ReduceOp.PreMulSum(double scalar) ? scaledSum(scalar, type) : null;
    }

    private int code(ReduceOp op, @Nullable NcclReduction scaled) {
        return op instanceof ReduceOp.BuiltIn builtIn ? builtIn.code() : scaled.code(this, scaled.type());
    }

    /**
     * Reduces all ranks' elements and leaves the result with every rank.
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

    /** The same, by a reduction of this communicator. */
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
     * Reduces all ranks' elements and leaves the result with one of them.
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

    /** The same, by a reduction of this communicator. */
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
     * Reduces all ranks' elements and leaves each rank its share of the result.
     *
     * @param send    {@code size() * count} elements
     * @param receive {@code count} elements; for an operation in place, {@code send}'s part number {@code rank()}
     * @param count   number of elements that each rank gets
     */
    public void reduceScatter(MemorySegment send, MemorySegment receive, long count, DataType type, ReduceOp op,
            CudaStream stream) {
        try (NcclReduction scaled = scaled(op, type)) {
            reduceScatter(send, receive, count, type, code(op, scaled), stream);
        }
    }

    /** The same, by a reduction of this communicator. */
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
     * Gives every rank one rank's elements.
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
     * Gives every rank all ranks' elements.
     *
     * @param send    {@code count} elements; for an operation in place, {@code receive}'s part number {@code rank()}
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
     * Gives one rank all ranks' elements. NCCL 2.28.
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
     * Gives each rank its part of one rank's elements. NCCL 2.28.
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
     * Sends elements to one rank, which receives as many. Several sends and receives that depend on each other belong
     * into one group.
     */
    public void send(MemorySegment buffer, long count, DataType type, int peer, CudaStream stream) {
        library.require(NcclFunction.SEND);
        long from = DeviceSegments.address("buffer", buffer, bytes(count, 1, type));
        enqueue(NcclFunction.SEND, stream, 4, from, count, type.code(), peer, 0, 0);
    }

    /** Receives elements from one rank, which sends as many. */
    public void receive(MemorySegment buffer, long count, DataType type, int peer, CudaStream stream) {
        library.require(NcclFunction.RECV);
        long to = DeviceSegments.address("buffer", buffer, bytes(count, 1, type));
        enqueue(NcclFunction.RECV, stream, 4, to, count, type.code(), peer, 0, 0);
    }

    /**
     * Enqueues a function that ends with the communicator and the stream. As plain numbers: a segment for each operand
     * would have to be made for every call, 40 bytes of it.
     *
     * @param arguments how many come before those two: 4, 5 or 6
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
     * @param offset  where in the peer's part they go, in bytes
     * @param context the context, 0 or more, below {@link NcclConfig.Option#RMA_CONTEXTS}
     * @throws IllegalArgumentException if the buffer is too small, closed or in the Java heap, or the window is another
     *                                  communicator's
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

    /** Lets what is enqueued from now on wait for signals. */
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

    // How calls are made, and the end

    /** {@return the GPU that this rank was made with} */
    public CudaDevice device() {
        return device;
    }

    /** {@return this end's number: 0 to {@code size() - 1}} */
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

    /** Gives back something of this communicator's; what is left when the communicator goes, goes with it. */
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

    /** Throws if a call failed; notes it if the call goes on by itself. */
    private void settle(NcclFunction function, MemorySegment communicator, int code) {
        if (code != nccl_h.ncclSuccess()) {
            if (code != nccl_h.ncclInProgress()) {
                throw library.failure(function, where(), communicator, code);
            }
            nonBlocking = true;
        }
    }

    /** Only what is known without asking NCCL again. */
    private String where() {
        return (rank < 0 ? "" : "rank " + rank + (size < 0 ? "" : " of " + size) + ", ") + device;
    }

    /** Begins a call on this communicator and a stream; {@link #exit} ends it. */
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

    /** An operand that only the root has. */
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
     * Gives up every operation and the communicator. A call of another thread that is stuck in NCCL is given 0.2 s to
     * leave, then freed by force. All ranks should abort; operations of those that do not may never end.
     */
    public void abort() {
        aborting.set(true);
        handle.closeWithin(ABORT_GRACE_NANOS);
    }

    /**
     * Waits for the operations under way and leaves the communicator. One that does not block is waited for 60 s and
     * then aborted. If another thread is in a call, the communicator goes when that call returns.
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
                // A communicator in error, or still at work, cannot be destroyed: only abort frees it.
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
