package org.millrace.net.auto;

import java.lang.foreign.MemorySegment;
import org.millrace.net.MemoryRegion;

/**
 * Memory that is registered with both networks, as it may serve connections of either.
 *
 * @param shm    the shared-memory network's region
 * @param socket the socket network's
 */
record AutoRegion(MemoryRegion shm, MemoryRegion socket) implements MemoryRegion {

    @Override
    public MemorySegment segment() {
        return shm.segment();
    }

    @Override
    public void close() {
        shm.close();
        socket.close();
    }
}
