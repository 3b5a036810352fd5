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
 * A transport, used in one of its ways.
 *
 * @param label      as {@link org.millrace.Route#transports} has it
 * @param algorithms that it can be asked to run
 * @param settings   how to ask for it
 */
record TransportVariant(String label, List<String> algorithms, Map<String, String> settings) {

    private static final String P2P_DISABLE = "NCCL_P2P_DISABLE";
    private static final String SHM_DISABLE = "NCCL_SHM_DISABLE";
    private static final String NET = "MILLRACE_NET";
    private static final String UNPACK = "NCCL_NET_DEVICE_UNPACK_ENABLED";
    private static final List<String> RING_AND_TREE = List.of("ring", "tree");

    /** All there are: ours, and those of other jars. */
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

    /** Where it is not, {@code doctor} says why. */
    private static boolean isUcxUsable() {
        try {
            UcxNetwork.describe(Optional.empty());
            return true;
        } catch (UcxUnavailableException none) {
            return false;
        }
    }

    /** Names of the transports of other jars, which are asked before ours. */
    static List<String> others() {
        List<String> names = new ArrayList<>();
        for (ServiceLoader.Provider<Transport> provider : ServiceLoader.load(Transport.class).stream().toList()) {
            try {
                names.add(provider.get().name());
            } catch (ServiceConfigurationError broken) {
                // the engine warns of it and does without
            }
        }
        return names;
    }

    /** The transport's name, as refusals begin with it. */
    String transport() {
        return label.split(" ", 2)[0];
    }

    /** What has to be set for the same cell to be the same whatever is set around it. */
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
