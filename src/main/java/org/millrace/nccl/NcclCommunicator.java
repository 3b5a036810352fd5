package org.millrace.nccl;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.MillraceException;
import org.millrace.Registration;
import org.millrace.agent.Waiting;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.DeviceSegments;
import org.millrace.cuda.handle.NativeHandle;
import org.millrace.ffi.nccl.ncclUniqueId;
import org.millrace.ffi.nccl.nccl_h;

/**
 * One rank's end of an NCCL communicator, from {@link NcclLibrary#join} or made from another one.
 *
 * <p>
 * One thread at a time may use it; {@link #abort()} and {@link #close()} are safe from any thread at any moment, more
 * than once. A call on a closed communicator is an {@link IllegalStateException}.
 */
public final class NcclCommunicator extends NcclCollectives implements AutoCloseable {

    /** How long {@link #abort()} lets calls of other threads leave by themselves before it goes ahead. */
    private static final long ABORT_GRACE_NANOS = 200_000_000;
    /** What a rank of a communicator that grows gives for its number. */
    private static final int EXISTING_RANK = -1;
    private static final Duration CLOSE_DEADLINE = Duration.ofSeconds(60);

    private final AtomicBoolean aborting;
    private final AtomicBoolean ending = new AtomicBoolean();
    private final @Nullable NcclCommunicator parent;

    private NcclCommunicator(NcclLibrary library, CudaDevice device, MemorySegment slot,
            @Nullable NcclCommunicator parent, int size, int rank, boolean nonBlocking, AtomicBoolean aborting) {
        super(library, device,
                NativeHandle.pending("NCCL communicator", slot, address -> release(library, address, aborting.get())),
                size, rank, nonBlocking);
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

    /**
     * Lets NCCL use device memory in place.
     *
     * @return the registration, until it or the communicator is closed
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
     * Registers device memory with all ranks together, each its own.
     *
     * @param memory    memory from {@link NcclLibrary#allocate}
     * @param symmetric whether all ranks' windows are the same, so that kernels can reach them directly; {@code memory}
     *                  begins at a multiple of 4096 then
     */
    public NcclWindow registerWindow(MemorySegment memory, boolean symmetric) {
        return NcclWindow.of(this, memory, symmetric ? Set.of(NcclWindow.Flag.SYMMETRIC) : Set.of());
    }

    /**
     * Registers device memory with all ranks together, each its own.
     *
     * @param memory memory from {@link NcclLibrary#allocate}
     * @param flags  how; the same on all ranks
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

    @Override
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
