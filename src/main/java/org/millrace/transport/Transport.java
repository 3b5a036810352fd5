package org.millrace.transport;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.net.MemoryRegion;

/**
 * One way to connect two ranks' devices: NCCL's {@code ncclTransport}. P2P, SHM and NET are there; others are found by
 * {@link java.util.ServiceLoader} on the class path, are asked before these, and need a public constructor without
 * arguments.
 *
 * <p>
 * A connection has two ends, and each goes through the same phases: see {@link TransportEnd}. All methods are called on
 * the thread that makes connections.
 */
public interface Transport {

    /** {@return a short name that no other transport has, for instance {@code "SHM"}} */
    String name();

    /**
     * What this rank tells the others of itself: what they need to know to decide whether they can connect to it, and
     * whether it takes part at all. Asked once for each communicator.
     *
     * @return a text for {@link #canConnect} to read on all ranks, at most some hundred characters; or why not, as in
     *         {@code "NCCL_SHM_DISABLE=1"}
     */
    Availability offer();

    /**
     * Whether two ranks that both offer this transport can use it. Both ranks ask, each with itself as the first: they
     * must get the same answer.
     */
    Availability canConnect(PeerInfo here, PeerInfo there);

    /** The sending end of a connection, of which nothing is done yet. */
    TransportEnd send(EndRequest request);

    /** The receiving end of a connection, of which nothing is done yet. */
    TransportEnd receive(EndRequest request);

    /**
     * Makes memory of the user's ready to be sent from and received into without slots between (mode PTR).
     *
     * @param memory native memory, whose lifetime is longer than the region's
     * @return what operations of this transport's connections may be announced with; null if their data always goes
     *         through slots
     */
    default @Nullable MemoryRegion register(MemorySegment memory) {
        return null;
    }

    /**
     * Whether a peer's device, connected with this one by this transport, reads what this rank sends where it lies, in
     * memory of the user's (mode PTR with no proxy between).
     *
     * @return false if data always goes through slots
     */
    default boolean isRead(MemorySegment memory, PeerInfo here, PeerInfo there, EndSettings settings) {
        return false;
    }

    /**
     * {@return what operations on any memory of this process may be announced with; null if it has to be registered}
     */
    default @Nullable MemoryRegion allMemory() {
        return null;
    }
}
