package org.millrace.engine;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.engine.EngineOptions.SharedMemoryOptions;
import org.millrace.engine.NetTransport.Unpacking;
import org.millrace.net.Listener;
import org.millrace.net.Network;
import org.millrace.net.shm.SharedHeap;
import org.millrace.net.shm.SharedMemory;
import org.millrace.net.shm.ShmUnavailableException;
import org.millrace.transport.PeerInfo;
import org.millrace.transport.Transport;

/**
 * Creates the transports in the order of preference, as in NCCL: the transports of other jars (service providers), then
 * P2P, SHM and NET.
 */
final class Transports {

    private static final Logger LOG = LogManager.getLogger(Transports.class);

    private Transports() {}

    /**
     * Returns all transports of a rank.
     *
     * @param unpacking settings for kernels that gather received data; null if they do not gather
     * @param here      this rank's listener, which other ranks connect to over the network
     */
    public static List<Transport> of(SharedMemoryOptions shared, @Nullable Unpacking unpacking, Path sharedDirectory,
            Network network, Listener here) {
        List<Transport> all = new ArrayList<>(shared.others() ? found() : List.of());
        all.add(new P2pTransport(shared));
        all.add(new ShmTransport(shared, sharedDirectory));
        all.add(new NetTransport(network, here, unpacking));
        return all;
    }

    /**
     * Returns a heap for the part of the device's memory that other processes map. Peers use this memory to read data
     * without a proxy, or to wake the rank. Returns null if no peer may map the heap, or if shared memory is not
     * available.
     */
    public static @Nullable SharedHeap heap(int rank, List<PeerInfo> peers) {
        PeerInfo here = peers.get(rank);
        if (SharedMemory.sealedDomain() == 0 || peers.stream().noneMatch(there -> mayMap(here, there))) {
            return null;
        }
        try {
            return SharedHeap.create();
        } catch (ShmUnavailableException e) {
            LOG.debug("rank {}: registered memory goes through slots", rank, e);
            return null;
        }
    }

    /**
     * Returns whether two ranks may map each other's heap. Two ranks of one process with P2P use their heaps only to
     * wake each other.
     */
    private static boolean mayMap(PeerInfo here, PeerInfo there) {
        if (here.rank() == there.rank() || !here.host().equals(there.host())) {
            return false;
        }
        boolean bothP2p = here.offer("P2P").yes() && there.offer("P2P").yes();
        return bothP2p || here.offer("SHM").yes() && there.offer("SHM").yes();
    }

    /**
     * Returns the transports of other jars. A transport that cannot be loaded is left out, and this rank does not offer
     * it.
     */
    private static List<Transport> found() {
        List<Transport> found = new ArrayList<>();
        for (ServiceLoader.Provider<Transport> provider : ServiceLoader.load(Transport.class).stream().toList()) {
            try {
                found.add(provider.get());
            } catch (ServiceConfigurationError e) {
                LOG.warn("a transport cannot be loaded, and is not offered: {}", e.getMessage());
            }
        }
        return found;
    }
}
