package org.millrace.net;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/** One way to move frames: TCP, shared memory, or another. All methods are safe from any thread. */
public interface Network extends AutoCloseable {

    /** {@return a name for settings and messages, for instance {@code "socket"}} */
    String name();

    /**
     * Opens a place for peers to connect to.
     *
     * @return a listener with a secret of its own
     * @throws ConnectionException if no place can be opened
     */
    Listener listen();

    /**
     * Begins to connect to a listener.
     *
     * @param address the listener's address
     * @param key     which of its connections this will be
     * @return the sending end in the making
     * @throws ConnectionException if the address is not one of this network's, or cannot be reached from here at all
     */
    Pending<FrameSender> connect(byte[] address, ConnectionKey key);

    /**
     * Makes memory ready for payloads.
     *
     * @param memory native memory whose lifetime is longer than the region's
     * @return the region
     */
    MemoryRegion register(MemorySegment memory);

    /**
     * {@return all native memory of this process as one region of the caller's, for networks that read and write any of
     * it without preparing it: memory that is not registered can then be sent from and received into. An offset is an
     * address. Null if memory has to be registered}
     */
    default @Nullable MemoryRegion allMemory() {
        return null;
    }

    /**
     * Waits, for some seconds at most, until peers have read what connections that are closed had sent before: this
     * process may end behind it. A network that is closed has done so.
     */
    default void awaitPeers() {
        // what was sent outlives this process
    }

    /** Closes what was opened here and is still open. */
    @Override
    void close();
}
