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
 * The transports there are, in the order in which they are asked: those of other jars, and then NCCL's order, P2P, SHM,
 * NET.
 */
final class Transports {

    private static final Logger LOG = LogManager.getLogger(Transports.class);

    private Transports() {}

    /**
     * All transports of a rank.
     *
     * @param unpacking null if kernels do not gather what they receive
     * @param here      where the others reach this rank over the network
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
     * Memory that other processes map, to allocate a device's from, for a rank whose peers may read there with no proxy
     * between, or which wakes them: null where there are none, or no such memory.
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

    /** Ranks of one process need no mapping where P2P connects them, but to wake each other. */
    private static boolean mayMap(PeerInfo here, PeerInfo there) {
        if (here.rank() == there.rank() || !here.host().equals(there.host())) {
            return false;
        }
        boolean bothP2p = here.offer("P2P").yes() && there.offer("P2P").yes();
        return bothP2p || here.offer("SHM").yes() && there.offer("SHM").yes();
    }

    /** One that cannot be loaded is left out: this rank then says to the others that it does not have it. */
    private static List<Transport> found() {
        List<Transport> found = new ArrayList<>();
        for (ServiceLoader.Provider<Transport> provider : ServiceLoader.load(Transport.class).stream().toList()) {
            try {
                found.add(provider.get());
            } catch (ServiceConfigurationError e) {
                LOG.warn("a transport is left out: {}", e.getMessage());
            }
        }
        return found;
    }
}
