package org.millrace.cli;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import org.millrace.net.ucx.UcxNetwork;
import org.millrace.net.ucx.UcxNetwork.UcxUnavailableException;
import org.millrace.transport.Transport;

/**
 * One form of a transport, with the settings that select this form.
 *
 * @param label      label as in {@link org.millrace.Route#transports}
 * @param algorithms algorithms that can run over the transport
 * @param settings   settings that request the transport
 */
record TransportVariant(String label, List<String> algorithms, Map<String, String> settings) {

    private static final String P2P_DISABLE = "NCCL_P2P_DISABLE";
    private static final String SHM_DISABLE = "NCCL_SHM_DISABLE";
    private static final String NET = "MILLRACE_NET";
    private static final String UNPACK = "NCCL_NET_DEVICE_UNPACK_ENABLED";
    private static final List<String> RING_AND_TREE = List.of("ring", "tree");

    /** Returns all variants: Millrace's own, and the transports of other jars. */
    static List<TransportVariant> all() {
        List<TransportVariant> all = new ArrayList<>(List.of(new TransportVariant("P2P", RING_AND_TREE, Map.of()),
                new TransportVariant("P2P by copy", RING_AND_TREE, Map.of("NCCL_P2P_USE_CUDA_MEMCPY", "1")),
                new TransportVariant("SHM", RING_AND_TREE, Map.of(P2P_DISABLE, "1")),
                new TransportVariant("SHM by copy", RING_AND_TREE,
                        Map.of(P2P_DISABLE, "1", "NCCL_SHM_USE_CUDA_MEMCPY", "1")),
                new TransportVariant("NET socket", RING_AND_TREE, Map.of(NET, "socket")),
                new TransportVariant("NET shm", RING_AND_TREE, Map.of(NET, "shm")),
                new TransportVariant("NET shm unpacked", RING_AND_TREE, Map.of(NET, "shm", UNPACK, "1")),
                new TransportVariant("NET socket unpacked", RING_AND_TREE, Map.of(NET, "socket", UNPACK, "1")),
                new TransportVariant("COLLNET", List.of("collnetdirect", "collnetchain"),
                        Map.of("NCCL_COLLNET_ENABLE", "1", "MILLRACE_COLLNET_MAX_BYTES", "1G"))));
        if (isUcxUsable()) {
            all.add(new TransportVariant("NET ucx", RING_AND_TREE, Map.of(NET, "ucx")));
        }
        for (String name : others()) {
            all.add(new TransportVariant(name, RING_AND_TREE, Map.of()));
        }
        return all;
    }

    /** Returns whether UCX is usable. If it is not, {@code doctor} reports the reason. */
    private static boolean isUcxUsable() {
        try {
            UcxNetwork.describe(Optional.empty());
            return true;
        } catch (UcxUnavailableException none) {
            return false;
        }
    }

    /**
     * Returns the names of the transports of other jars. These transports are tried before Millrace's own transports.
     */
    static List<String> others() {
        List<String> names = new ArrayList<>();
        for (ServiceLoader.Provider<Transport> provider : ServiceLoader.load(Transport.class).stream().toList()) {
            try {
                names.add(provider.get().name());
            } catch (ServiceConfigurationError broken) {
                // the engine warns about the broken provider and continues without it
            }
        }
        return names;
    }

    /** Returns the transport's name. If the transport refuses a route, the reason begins with this name. */
    String transport() {
        return label.split(" ", 2)[0];
    }

    /** Returns the settings that apply to every cell. These settings replace settings of the environment. */
    static Map<String, String> neutral() {
        return Map.of(P2P_DISABLE, "0", "NCCL_P2P_USE_CUDA_MEMCPY", "0", SHM_DISABLE, "0", "NCCL_SHM_USE_CUDA_MEMCPY",
                "0", "NCCL_SHM_MEMCPY_MODE", "1", NET, "auto", UNPACK, "0", "NCCL_COLLNET_ENABLE", "0", "NCCL_BUFFSIZE",
                "64K", "MILLRACE_DEVICE", "host");
    }

    @Override
    public String toString() {
        return label;
    }
}
