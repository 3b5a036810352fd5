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
     * whether this rank can use the transport. If so, the text in the information contains the data that other ranks
     * need in {@link #canConnect}. Called once for each communicator.
     *
     * @return the availability. The text of an available transport has at most a few hundred characters. The text of an
     *         unavailable transport is the reason, for instance {@code "NCCL_SHM_DISABLE=1"}
     */
    Availability offer();

    /**
     * Returns whether two ranks can use this transport. Requires that both ranks offer the transport. Each of the two
     * ranks calls this method with itself as the first argument. Both calls must have the same result.
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
     * Returns whether a peer's device can read the given memory of this rank's user directly (mode PTR without a
     * proxy). Called only if this transport connects the two ranks.
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
