package org.millrace.net;

import java.lang.foreign.MemorySegment;

/**
 * Memory that a network may read payloads from and write payloads to. What the network needs to reach it (views,
 * registrations with a card) is made once, here, and not per frame.
 */
public interface MemoryRegion extends AutoCloseable {

    /** {@return the memory that was registered} */
    MemorySegment segment();

    /**
     * Makes sure that a device that is told now finds what the network has written here. Nothing to do where the writes
     * of a completed frame are visible to all, as in a host's memory; memory of a device that a card writes to by
     * itself has to be read back.
     *
     * @param offset of the payload
     * @param bytes  its length
     */
    default void flush(long offset, long bytes) {
        // visible already
    }

    /** Gives back what the network holds for this memory; no frame may be in flight in it. */
    @Override
    void close();
}
