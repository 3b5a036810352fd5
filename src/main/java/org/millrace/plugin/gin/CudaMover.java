package org.millrace.plugin.gin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.PinnedMemory;
import org.millrace.cuda.driver.CopyKernel;
import org.millrace.cuda.driver.CopyQueue;
import org.millrace.cuda.driver.CopyQueue.Counts;
import org.millrace.cuda.driver.CudaDriver;
import org.millrace.gin.StagingBuffers;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;

/**
 * Moves the bytes of one device's windows. This class has staging buffers and three queues of copies: out of windows,
 * into windows, and to and from mapped windows of peers. With separate queues, outbound copies do not wait for inbound
 * copies. Used by one agent's thread, on which the device is current.
 *
 * <p>
 * Copies into windows do not extend the kernel's stay. Otherwise a peer that continues to put would keep the kernel on
 * this GPU up to its maximum stay, and the program's {@code cudaDeviceSynchronize} would wait for it. Copies out of
 * windows do, also those for a peer's gets.
 */
final class CudaMover implements AutoCloseable {

    private static final int BUFFERS = 64;

    private final CopyQueue out;
    private final CopyQueue in;
    private final CopyQueue direct;
    private final Staging staging;

    /**
     * @param context    the {@code CUcontext} of the device in which copies are made
     * @param network    network that carries staged bytes
     * @param chunkBytes size of a staging buffer: the chunk size of {@link org.millrace.gin.GinOptions}
     * @param kernel     kernel of the device that makes small copies; null if copy engines make them
     */
    public CudaMover(CudaDriver driver, CudaDevice device, long context, Network network, long chunkBytes,
            @Nullable CopyKernel kernel) {
        out = new CopyQueue(driver, context, kernel, true);
        in = new CopyQueue(driver, context, kernel, false);
        direct = new CopyQueue(driver, context, kernel, true);
        staging = new Staging(device, network, BUFFERS, chunkBytes, new StagingCopies(out, in));
    }

    CopyQueue out() {
        return out;
    }

    CopyQueue in() {
        return in;
    }

    CopyQueue direct() {
        return direct;
    }

    Staging staging() {
        return staging;
    }

    /**
     * Submits the copies that were held back to form batches.
     */
    void submit() {
        out.submit();
        in.submit();
        direct.submit();
    }

    public Counts counts() {
        return out.counts().plus(in.counts()).plus(direct.counts());
    }

    /** Waits until no submitted copy is in flight. Callable from any thread. */
    public void settle() {
        out.settle();
        in.settle();
        direct.settle();
    }

    @Override
    public void close() {
        out.close();
        in.close();
        direct.close();
        staging.close();
    }

    /** Pinned buffers of one chunk each, between a device and a network. The agent's thread takes and returns them. */
    static final class Staging implements AutoCloseable {

        private final Arena arena = Arena.ofShared();
        private final MemorySegment host;
        private final long device;
        private final MemoryRegion region;
        private final long bufferBytes;
        private final StagingBuffers buffers;

        @SuppressWarnings("restricted")
        Staging(CudaDevice device, Network network, int count, long bufferBytes, StagingBuffers.Copies copies) {
            PinnedMemory pinned = PinnedMemory.allocate(device, count * bufferBytes, arena, PinnedMemory.Flag.PORTABLE,
                    PinnedMemory.Flag.MAPPED);
            this.device = pinned.device().address();
            // The segment has the global scope, so an access does not check whether an arena is open. The memory is
            // freed after the agent has released all windows.
            this.host = MemorySegment.ofAddress(pinned.host().address()).reinterpret(pinned.host().byteSize());
            this.region = network.register(host);
            this.bufferBytes = bufferBytes;
            this.buffers = new StagingBuffers(count, copies);
        }

        StagingBuffers buffers() {
            return buffers;
        }

        MemoryRegion region() {
            return region;
        }

        MemorySegment host() {
            return host;
        }

        long offset(int buffer) {
            return buffer * bufferBytes;
        }

        long address(int buffer) {
            return device + buffer * bufferBytes;
        }

        @Override
        public void close() {
            region.close();
            arena.close();
        }
    }

    /** Completion of copies between windows and staging buffers. Agent's thread only. The device must be current. */
    private static final class StagingCopies implements StagingBuffers.Copies {

        private final CopyQueue out;
        private final CopyQueue in;
        private long lastOut;
        private long lastIn;

        StagingCopies(CopyQueue out, CopyQueue in) {
            this.out = out;
            this.in = in;
        }

        @Override
        public void mark() {
            lastOut = out.last();
            lastIn = in.last();
        }

        @Override
        public boolean arePastMark() {
            return out.isDone(lastOut) && in.isDone(lastIn);
        }
    }
}
