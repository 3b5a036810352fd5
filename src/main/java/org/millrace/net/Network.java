package org.millrace.net;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * A way to move frames between processes, for example over TCP or through shared memory. All methods are safe from any
 * thread.
 */
public interface Network extends AutoCloseable {

    /** {@return name of the network for settings and messages, for instance {@code "socket"}} */
    String name();

    /**
     * Opens a listener for peers.
     *
     * @return a listener with its own secret
     * @throws ConnectionException if no listener can be opened
     */
    Listener listen();

    /**
     * Begins to connect to a listener.
     *
     * @param address the listener's address
     * @param key     key of the connection
     * @return the pending sending end
     * @throws ConnectionException if the address belongs to another network, or if this process cannot reach it
     */
    Pending<FrameSender> connect(byte[] address, ConnectionKey key);

    /**
     * Prepares memory for payloads.
     *
     * @param memory native memory that must exist until the region is closed
     * @return the region
     */
    MemoryRegion register(MemorySegment memory);

    /**
     * {@return all native memory of this process as one region, owned by the caller; null if memory must be registered}
     * Offsets in this region are addresses. A network has such a region if it reads and writes memory without
     * preparation. Frames can then use unregistered memory.
     */
    default @Nullable MemoryRegion allMemory() {
        return null;
    }

    /**
     * Waits, for some seconds at most, until peers have read the data that closed connections had sent. The process can
     * then end without loss of this data. Closing a network includes this wait.
     */
    default void awaitPeers() {
        // In most networks, sent data reaches the peer even if this process ends.
    }

    /** Closes all open listeners and connections of this network. */
    @Override
    void close();
}
