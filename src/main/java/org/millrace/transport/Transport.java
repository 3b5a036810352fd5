package org.millrace.transport;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.net.MemoryRegion;

/**
 * One way to connect two ranks' devices: NCCL's {@code ncclTransport}. The engine provides P2P, SHM and NET. Other
 * transports are found by {@link java.util.ServiceLoader} on the class path and are asked first. They need a public
 * constructor without arguments.
 *
 * <p>
 * A connection has two ends, and each passes through the same phases, see {@link TransportEnd}. All methods are called
 * on the thread that makes connections.
 */
public interface Transport {

    /** {@return a short name that no other transport has, for instance {@code "SHM"}} */
    String name();

    /**
     * Returns the information that this rank sends to the others. It states whether this rank takes part, and contains
     * the data that the others need to decide whether they can connect. Called once for each communicator.
     *
     * @return a text of at most some hundred characters that {@link #canConnect} reads on all ranks; or the reason why
     *         the transport is unavailable, as in {@code "NCCL_SHM_DISABLE=1"}
     */
    Availability offer();

    /**
     * Returns whether two ranks that both offer this transport can use it. Each of the two ranks calls this method,
     * with itself as the first argument. They must get the same answer.
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
     * Returns whether a peer's device that this transport connects to this one reads the data in the user's memory
     * (mode PTR without a proxy).
     *
     * @return false if data always passes through slots
     */
    default boolean isRead(MemorySegment memory, PeerInfo here, PeerInfo there, EndSettings settings) {
        return false;
    }

    /** {@return the region for operations on any memory of this process; null if memory must be registered} */
    default @Nullable MemoryRegion allMemory() {
        return null;
    }
}
