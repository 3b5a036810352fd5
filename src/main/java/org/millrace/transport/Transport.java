package org.millrace.transport;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.net.MemoryRegion;

/**
 * One way to connect two ranks' devices: NCCL's {@code ncclTransport}. The engine provides P2P, SHM and NET. Other
 * transports are found by {@link java.util.ServiceLoader} on the class path and take precedence. Such a transport needs
 * a public constructor without arguments.
 *
 * <p>
 * A connection has two ends, and each end passes through the same phases, see {@link TransportEnd}. All methods are
 * called on the thread that establishes connections.
 */
public interface Transport {

    /** {@return the unique short name of this transport, for instance {@code "SHM"}} */
    String name();

    /**
     * Returns the information about this transport that this rank sends to the other ranks. The information states
     * whether this rank can use the transport. The text of the result contains the data that other ranks need in
     * {@link #canConnect}. Called once for each communicator.
     *
     * @return the availability; its text has at most some hundred characters, or is the reason why the transport is
     *         unavailable, for instance {@code "NCCL_SHM_DISABLE=1"}
     */
    Availability offer();

    /**
     * Returns whether two ranks can use this transport. Both ranks offer the transport. Each of the two ranks calls
     * this method with itself as the first argument. Both calls must have the same result.
     */
    Availability canConnect(PeerInfo here, PeerInfo there);

    /** Returns the sending end of a connection, before its first phase. */
    TransportEnd send(EndRequest request);

    /** Returns the receiving end of a connection, before its first phase. */
    TransportEnd receive(EndRequest request);

    /**
     * Registers memory of the user, so that connections send from it and receive into it without slots (mode PTR).
     *
     * @param memory native memory that lives longer than the region
     * @return the region for operations of this transport's connections; null if their data always passes through slots
     */
    default @Nullable MemoryRegion register(MemorySegment memory) {
        return null;
    }

    /**
     * Returns whether the device of a peer, connected by this transport, can read data directly in memory of the user
     * (mode PTR without a proxy).
     *
     * @return false if data always passes through slots
     */
    default boolean isRead(MemorySegment memory, PeerInfo here, PeerInfo there, EndSettings settings) {
        return false;
    }

    /**
     * {@return the region that covers all memory of this process; null if memory must be registered} Operations on any
     * memory may use this region.
     */
    default @Nullable MemoryRegion allMemory() {
        return null;
    }
}
