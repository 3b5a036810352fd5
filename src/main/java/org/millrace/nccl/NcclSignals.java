package org.millrace.nccl;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.function.ToIntBiFunction;
import org.millrace.DataType;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaStream;
import org.millrace.cuda.DeviceSegments;
import org.millrace.cuda.handle.NativeHandle;
import org.millrace.ffi.nccl.ncclWaitSignalDesc_t;
import org.millrace.ffi.nccl.nccl_h;

/**
 * A communicator's puts into a window of a peer, and the signals that tell the peer of them: enqueued to a stream, with
 * no part of the peer's program in it but that it waits. NCCL 2.29.
 *
 * <p>
 * All of them throw {@link NcclException} if NCCL refuses, and {@link IllegalStateException} if the communicator or the
 * stream is closed.
 */
public abstract sealed class NcclSignals extends CommunicatorCalls permits NcclTransfers {

    /** {@code flags} of NCCL's functions: there are none yet. */
    private static final int NO_FLAGS = 0;

    /**
     * Signals of one peer that are waited for.
     *
     * @param count   how many, 1 or more
     * @param signal  their number, as the peer gives it
     * @param context their context, as the peer gives it
     */
    public record Awaited(int count, int peer, int signal, int context) {
    }

    NcclSignals(NcclLibrary library, CudaDevice device, NativeHandle handle, int size, int rank, boolean nonBlocking) {
        super(library, device, handle, size, rank, nonBlocking);
    }

    /**
     * Writes elements into a window of a peer, and then signals the peer.
     *
     * @param buffer  {@code count} elements
     * @param window  the window, as this rank registered its part
     * @param offset  where in the peer's part they go, in bytes
     * @param signal  the signal's number, 0 or more
     * @param context the context, 0 or more, below {@link NcclConfig.Option#RMA_CONTEXTS}
     * @throws IllegalArgumentException if the buffer is too small, closed or in the Java heap, or the window is another
     *                                  communicator's
     */
    public final void putSignal(MemorySegment buffer, long count, DataType type, int peer, NcclWindow window,
            long offset, int signal, int context, CudaStream stream) {
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
     * @param signal  the signal's number, 0 or more
     * @param context the context, 0 or more
     */
    public final void signal(int peer, int signal, int context, CudaStream stream) {
        library.require(NcclFunction.SIGNAL);
        enqueue(NcclFunction.SIGNAL, stream,
                (communicator, queue) -> nccl_h.ncclSignal(peer, signal, context, NO_FLAGS, communicator, queue));
    }

    /** Lets what is enqueued from now on wait for signals. */
    public final void waitSignals(List<Awaited> signals, CudaStream stream) {
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
}
