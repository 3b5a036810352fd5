package org.millrace.gin.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.PinnedMemory;
import org.millrace.gin.window.StagingBuffers;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;

/** Pinned buffers of one chunk each, between a device and a network. Taken and given back by the agent's thread. */
final class Staging implements AutoCloseable {

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
        // Of the global scope, so that a copy checks no arena: it is closed after the agent has let go of everything.
        this.host = MemorySegment.ofAddress(pinned.host().address()).reinterpret(pinned.host().byteSize());
        this.region = network.register(host);
        this.bufferBytes = bufferBytes;
        this.buffers = new StagingBuffers(count, copies);
    }

    /** Which of them are free. */
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

    /** Where the device sees a buffer. */
    long address(int buffer) {
        return device + buffer * bufferBytes;
    }

    @Override
    public void close() {
        region.close();
        arena.close();
    }
}
