package org.millrace.net;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/** A way to move frames: TCP, shared memory, or another. All methods are safe from any thread. */
public interface Network extends AutoCloseable {

    /** {@return name for settings and messages, for instance {@code "socket"}} */
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
     * @throws ConnectionException if the address belongs to another network, or is unreachable from here
     */
    Pending<FrameSender> connect(byte[] address, ConnectionKey key);

    /**
     * Prepares memory for payloads.
     *
     * @param memory native memory that outlives the region
     * @return the region
     */
    MemoryRegion register(MemorySegment memory);

    /**
     * {@return all native memory of this process as one region, owned by the caller; null if memory must be registered.
     * Offsets in it are addresses. A network has such a region if it reads and writes memory without preparation:
     * frames can then use unregistered memory}
     */
    default @Nullable MemoryRegion allMemory() {
        return null;
    }

    /**
     * Waits, for some seconds at most, until peers have read the data sent by connections that are closed. The process
     * may end afterwards. Closing a network includes this wait.
     */
    default void awaitPeers() {
        // sent data outlives this process
    }

    /** Closes all open listeners and connections of this network. */
    @Override
    void close();
}
