package org.millrace.gpu;

import java.lang.foreign.MemorySegment;
import org.millrace.StagingMemory;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaStream;
import org.millrace.cuda.PinnedMemory;
import org.millrace.cuda.PointerAttributes;

/**
 * Copies between a GPU and host memory that it cannot reach by itself: the Java heap, and memory that is not pinned,
 * which CUDA would read at once, or keep the thread for until it is written. They go piece by piece through pinned
 * memory, in the order of the stream.
 */
final class StagedCopies implements AutoCloseable {

    /** Pinned memory is dear, and one piece is copied by the host while none is by the GPU: a call is 10 µs of that. */
    private static final long PIECE_BYTES = 4 << 20;

    private final CudaDevice device;
    private final StagingMemory pinned;
    private boolean prepared;

    StagedCopies(CudaDevice device) {
        this.device = device;
        this.pinned = new StagingMemory((bytes, arena) -> PinnedMemory.allocate(device, bytes, arena).host());
    }

    /**
     * Takes what copies there and back need, before operations are enqueued: to pin memory can wait for kernels to end,
     * and hold up what they wait for.
     */
    synchronized void prepare() {
        if (!prepared) {
            prepared = true;
            try (StagingMemory.Lease _ = pinned.take(PIECE_BYTES); StagingMemory.Lease _ = pinned.take(PIECE_BYTES)) {
                return; // both are idle from now on
            }
        }
    }

    /** Whether memory of the host is to be copied so. What a graph records, CUDA copies by itself. */
    boolean isFor(MemorySegment host, CudaStream stream) {
        if (host.byteSize() == 0 || stream.isCapturing()) {
            return false;
        }
        return !host.isNative()
                || PointerAttributes.of(device.runtime(), host).kind() == PointerAttributes.Kind.UNREGISTERED;
    }

    void toDevice(MemorySegment host, MemorySegment target, CudaStream stream) {
        copy(host, target, stream, true);
    }

    void toHost(MemorySegment source, MemorySegment host, CudaStream stream) {
        copy(host, source, stream, false);
    }

    private void copy(MemorySegment host, MemorySegment onDevice, CudaStream stream, boolean toDevice) {
        if (host.byteSize() != onDevice.byteSize()) {
            throw new IllegalArgumentException("copy between " + host.byteSize() + " bytes of the host and "
                    + onDevice.byteSize() + " of the device: both must be of one size");
        }
        prepare();
        StagingMemory.Lease lease = pinned.take(PIECE_BYTES);
        for (long at = 0; at < host.byteSize(); at += PIECE_BYTES) {
            long bytes = Math.min(PIECE_BYTES, host.byteSize() - at);
            MemorySegment piece = lease.memory().asSlice(0, bytes);
            MemorySegment there = host.asSlice(at, bytes);
            if (toDevice) {
                stream.call(() -> piece.copyFrom(there));
                stream.copy(onDevice.asSlice(at, bytes), piece);
            } else {
                stream.copy(piece, onDevice.asSlice(at, bytes));
                stream.call(() -> there.copyFrom(piece));
            }
        }
        stream.call(lease::close); // behind the last copy
    }

    @Override
    public void close() {
        pinned.close();
    }
}
