package org.millrace.transport;

import org.millrace.net.MemoryRegion;

/** Memory of the user's as the transports of one rank know it. */
public interface RegisteredMemory extends AutoCloseable {

    /**
     * What operations on connections with a peer may be announced with.
     *
     * @param peer the rank at the other end
     * @return the region; null if data to and from there always goes through slots
     */
    MemoryRegion with(int peer);

    /** Nobody uses the memory any more. May be called twice. */
    @Override
    void close();
}
