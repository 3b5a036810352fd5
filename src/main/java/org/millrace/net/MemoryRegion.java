package org.millrace.net;

import java.lang.foreign.MemorySegment;

/**
 * Memory that a network may read payloads from and write payloads to. The network prepares its access (views,
 * registration with a card) once, here, and not per frame.
 */
public interface MemoryRegion extends AutoCloseable {

    /** {@return the registered memory} */
    MemorySegment segment();

    /**
     * Makes payloads written by the network visible to a device that is notified afterwards. This does nothing where
     * the writes of a completed frame are visible to all, as in host memory. Device memory that a card writes directly
     * must be read back.
     *
     * @param offset offset of the payload
     * @param bytes  length of the payload
     */
    default void flush(long offset, long bytes) {
        // visible already
    }

    /** Releases the network's resources for this memory. No frame may be in flight in it. */
    @Override
    void close();
}
