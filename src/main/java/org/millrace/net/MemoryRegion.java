package org.millrace.net;

import java.lang.foreign.MemorySegment;

/**
 * Memory that a network may read payloads from and write payloads to. The network prepares its access to the memory
 * when the region is created, not for each frame. The preparation creates buffers that refer to the memory, or
 * registers the memory with a network card.
 */
public interface MemoryRegion extends AutoCloseable {

    /** {@return the memory of the region} */
    MemorySegment segment();

    /**
     * Makes payloads visible to a device that is notified afterwards. Called after the network has written the
     * payloads. The method does nothing if every reader sees the writes of a completed frame, as in host memory. If a
     * network card writes device memory directly, the method must read back from that memory.
     *
     * @param offset offset of the payload
     * @param bytes  length of the payload
     */
    default void flush(long offset, long bytes) {
        // This default method does nothing, because it is for host memory: every reader, including a device, already
        // sees the network's writes.
    }

    /** Releases the network's resources for this memory. No frame in flight may use the memory. */
    @Override
    void close();
}
