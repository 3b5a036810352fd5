package org.millrace.nccl;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.function.ToIntFunction;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaStream;
import org.millrace.cuda.DeviceSegments;
import org.millrace.cuda.handle.NativeHandle;
import org.millrace.ffi.nccl.nccl_h;

/**
 * How every call of a communicator is made: entered, so that it is not given back meanwhile, its result judged, and
 * left; and what its messages call it.
 */
abstract sealed class CommunicatorCalls permits NcclSignals {

    final NcclLibrary library;
    final CudaDevice device;
    final NativeHandle handle;
    /** Also set by the first call that goes on by itself. */
    volatile boolean nonBlocking;
    /** Less than 0 until NCCL was asked, as {@link #size}. */
    private volatile int rank;
    private volatile int size;

    CommunicatorCalls(NcclLibrary library, CudaDevice device, NativeHandle handle, int size, int rank,
            boolean nonBlocking) {
        this.library = library;
        this.device = device;
        this.handle = handle;
        this.size = size;
        this.rank = rank;
        this.nonBlocking = nonBlocking;
    }

    /** {@return the GPU that this rank was made with} */
    public final CudaDevice device() {
        return device;
    }

    /** {@return this end's number: 0 to {@code size() - 1}} */
    public final int rank() {
        if (rank < 0) {
            rank = query(NcclFunction.COMM_USER_RANK,
                    (communicator, out) -> nccl_h.ncclCommUserRank(communicator, out));
        }
        return rank;
    }

    /** {@return the number of ranks: 1 or more} */
    public final int size() {
        if (size < 0) {
            size = query(NcclFunction.COMM_COUNT, (communicator, out) -> nccl_h.ncclCommCount(communicator, out));
        }
        return size;
    }

    /** A call that writes an int. */
    interface Query {
        int call(MemorySegment communicator, MemorySegment out);
    }

    final int query(NcclFunction function, Query query) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.JAVA_INT);
            enter(function, communicator -> query.call(communicator, out));
            return out.get(ValueLayout.JAVA_INT, 0);
        }
    }

    /** Makes a call and throws if it fails. */
    final void enter(NcclFunction function, ToIntFunction<MemorySegment> call) {
        MemorySegment communicator = handle.enter();
        try {
            settle(function, communicator, call.applyAsInt(communicator));
        } finally {
            handle.exit();
        }
    }

    /** Gives back something of this communicator's; what is left when the communicator goes, goes with it. */
    final void release(NcclFunction function, ToIntFunction<MemorySegment> call) {
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
    final void settle(NcclFunction function, MemorySegment communicator, int code) {
        if (code != nccl_h.ncclSuccess()) {
            if (code != nccl_h.ncclInProgress()) {
                throw library.failure(function, where(), communicator, code);
            }
            nonBlocking = true;
        }
    }

    /** Only what is known without asking NCCL again. */
    final String where() {
        return (rank < 0 ? "" : "rank " + rank + (size < 0 ? "" : " of " + size) + ", ") + device;
    }

    /** Begins a call on this communicator and a stream; {@link #exit} ends it. */
    final MemorySegment enter(CudaStream stream) {
        MemorySegment communicator = handle.enter();
        try {
            stream.handle().enter();
        } catch (IllegalStateException closedStream) {
            handle.exit();
            throw closedStream;
        }
        return communicator;
    }

    final void exit(CudaStream stream) {
        stream.handle().exit();
        handle.exit();
    }

    /** An operand that only the root has. */
    final long optional(String role, @Nullable MemorySegment segment, long bytes, int root) {
        boolean absent = segment == null || segment.address() == 0;
        return absent && rank() != root ? 0
                : DeviceSegments.address(role, segment == null ? MemorySegment.NULL : segment, bytes);
    }

    static long bytes(long count, int ranks, DataType type) {
        long each = (long) ranks * type.bytes();
        long bytes = count * each;
        if (count < 0 || bytes < 0 || Math.multiplyHigh(count, each) != 0) {
            throw new IllegalArgumentException(
                    "a count of " + count + " " + type.label() + " elements: counts are 0 to " + Long.MAX_VALUE / each);
        }
        return bytes;
    }
}
