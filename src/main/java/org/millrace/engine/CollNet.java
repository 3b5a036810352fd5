package org.millrace.engine;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.MillraceException;
import org.millrace.Operation;
import org.millrace.ReduceOp;
import org.millrace.abi.KernelChannel;
import org.millrace.collnet.CollectiveNetwork;
import org.millrace.collnet.CollectiveNetworkProvider;
import org.millrace.collnet.MeshNetwork;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Settings;
import org.millrace.device.CollectiveFunction;
import org.millrace.device.DeviceCommunicator;
import org.millrace.net.Listener;
import org.millrace.net.Network;
import org.millrace.net.Pending;
import org.millrace.net.connection.FullMesh;
import org.millrace.transport.Availability;
import org.millrace.transport.EndRequest;
import org.millrace.transport.PeerInfo;

/**
 * Selects the collectives that run over networks that reduce data, and configures the members of these networks. A
 * communicator has up to two such networks. The first network connects all ranks. The second network connects one
 * leader of each host. The other ranks of a host pass their elements to their leader along a chain.
 */
final class CollNet {

    private static final Logger LOG = LogManager.getLogger(CollNet.class);
    /** Operations that can run on a network that reduces data. */
    public static final Set<Operation> OPERATIONS =
            Set.of(Operation.ALL_REDUCE, Operation.ALL_GATHER, Operation.REDUCE_SCATTER);

    private final AlgorithmChoice choice;
    private final CollNetTransport transport;
    private final int ranks;
    private final long maxBytes;
    /** Whether there are several hosts, at least one of them with several ranks. */
    private final boolean hasLeaders;

    private CollNet(AlgorithmChoice choice, CollNetTransport transport, int ranks, long maxBytes, boolean hasLeaders) {
        this.choice = choice;
        this.transport = transport;
        this.ranks = ranks;
        this.maxBytes = maxBytes;
        this.hasLeaders = hasLeaders;
    }

    /**
     * Returns this rank's transport for networks that reduce. The transport reports to the other ranks the networks
     * that this rank can use.
     *
     * @param here this rank's listener, which other ranks connect to over the network
     */
    public static CollNetTransport transport(Configuration configuration, Network network, Listener here) {
        boolean wanted = configuration.get(Settings.COLLNET_ENABLE);
        List<CollectiveNetworkProvider> providers = new ArrayList<>(wanted ? found() : List.of());
        String limits = Settings.COLLNET_MAX_BYTES.name() + '=' + configuration.get(Settings.COLLNET_MAX_BYTES);
        providers.add(new MeshProvider(network, here));
        return new CollNetTransport(wanted ? null : Settings.COLLNET_ENABLE.name() + " is not set to 1", limits,
                providers);
    }

    /**
     * Adds the members of both networks to the connections as peer groups, and writes the numbers of these groups into
     * the device's channels. Returns null if any rank does not offer the networks. The result is the same on all ranks.
     *
     * @param nodes host of each rank, numbered from 0
     */
    public static @Nullable CollNet of(Configuration configuration, AlgorithmChoice choice, int[] nodes,
            DeviceCommunicator device, TransportConnections connections, CollNetTransport transport) {
        List<PeerInfo> peers = connections.peers();
        PeerInfo here = peers.get(device.rank());
        for (PeerInfo there : peers) {
            if (!there.offer(transport.name()).yes()) {
                refuse(choice, here, there, transport);
                return null;
            }
        }
        for (PeerInfo there : peers) {
            Availability availability = transport.canConnect(here, there);
            if (!availability.yes()) {
                throw new MillraceException(transport.name() + ": " + availability.text());
            }
        }
        String network = transport.choose(peers);
        int rank = device.rank();
        int hosts = (int) IntStream.of(nodes).distinct().count();
        List<Integer> leaders =
                IntStream.range(0, peers.size()).filter(each -> before(nodes, each) < 0).boxed().toList();
        EndRequest.PeerGroup all =
                new EndRequest.PeerGroup(peers.size(), "the collective network", range(peers.size()));
        EndRequest.PeerGroup ofLeaders =
                new EndRequest.PeerGroup(peers.size() + 1, "the collective network of the hosts", leaders);
        connections.add(all, transport);
        connections.add(ofLeaders, transport);
        int above = before(nodes, rank);
        int below = IntStream.range(rank + 1, nodes.length)
                .filter(each -> nodes[each] == nodes[rank])
                .findFirst()
                .orElse(KernelChannel.NO_RANK);
        for (int channel = 0; channel < device.channels(); channel++) {
            KernelChannel view = device.channel(channel).view();
            view.network(all.number());
            view.networkChain(above < 0 ? ofLeaders.number() : above, below);
        }
        long maxBytes = configuration.get(Settings.COLLNET_MAX_BYTES);
        boolean hasLeaders = hosts > 1 && hosts < peers.size();
        LOG.info("rank {}: collectives of up to {} bytes go through the collective network {}, {}", rank, maxBytes,
                network, hasLeaders ? "all-reduces by a leader for each of " + hosts + " hosts" : "by every rank");
        return new CollNet(choice, transport, peers.size(), maxBytes, hasLeaders);
    }

    /** Returns the previous rank on the same host, or -1 if the rank is the first. */
    private static int before(int[] nodes, int rank) {
        int before = rank - 1;
        while (before >= 0 && nodes[before] != nodes[rank]) {
            before--;
        }
        return before;
    }

    private static List<Integer> range(int ranks) {
        return IntStream.range(0, ranks).boxed().toList();
    }

    private static void refuse(AlgorithmChoice choice, PeerInfo here, PeerInfo there, CollNetTransport transport) {
        if (choice.needsCollNet(Operation.ALL_REDUCE)) {
            throw new ConfigurationException(Settings.ALGORITHMS.name() + " allows only collnet for allreduce, and "
                    + Settings.COLLNET_ENABLE.name() + "=1 is not set on every rank");
        }
        if (here.offer(transport.name()).yes()) {
            LOG.warn("rank {}: NCCL_COLLNET_ENABLE=1 has no effect, as it is not set on rank {}", here.rank(),
                    there.rank());
        }
    }

    /**
     * Returns the providers of other jars, ordered by name. A provider that cannot be loaded is ignored, and this rank
     * does not offer it to the other ranks.
     */
    private static List<CollectiveNetworkProvider> found() {
        TreeMap<String, CollectiveNetworkProvider> found = new TreeMap<>();
        for (var provider : ServiceLoader.load(CollectiveNetworkProvider.class).stream().toList()) {
            try {
                CollectiveNetworkProvider made = provider.get();
                found.put(made.name(), made);
            } catch (ServiceConfigurationError e) {
                LOG.warn("a collective network cannot be loaded, and is not offered: {}", e.getMessage());
            }
        }
        return List.copyOf(found.values());
    }

    /**
     * Returns the algorithm by which a collective uses these networks, or null if the collective does not use them. The
     * result is the same on all ranks.
     *
     * <p>
     * If hosts have leaders, an all-reduce uses the leaders. At every size, an all-reduce with leaders is at least as
     * fast as an all-reduce without leaders, in which each rank uses the network directly. {@code collnet.md} has the
     * measurement.
     *
     * @param bytes size of each rank's part
     * @throws MillraceException if the networks do not support the operation, and the user's settings allow no
     *                           algorithm without a network
     */
    public CollectiveFunction.@Nullable Algorithm algorithm(Operation operation, long bytes, DataType type,
            ReduceOp op) {
        boolean direct = choice.allows(operation, CollectiveFunction.Algorithm.COLLNET_DIRECT);
        boolean chain = choice.allows(operation, CollectiveFunction.Algorithm.COLLNET_CHAIN);
        if (!OPERATIONS.contains(operation) || !direct && !chain) {
            return null;
        }
        boolean supported = !operation.reduces() || transport.reduceSupport(type, op);
        boolean alone = choice.needsCollNet(operation);
        if (alone && !supported) {
            throw new MillraceException(Settings.ALGORITHMS.name() + " allows only collnet for "
                    + operation.ncclName().toLowerCase(Locale.ROOT) + ", and the collective network does not reduce "
                    + type.label() + " by " + op.label() + ": allow ring, too");
        }
        if (!supported || !alone && bytes * (operation == Operation.ALL_REDUCE ? 1 : ranks) > maxBytes) {
            return null;
        }
        return chain && (!direct || hasLeaders) ? CollectiveFunction.Algorithm.COLLNET_CHAIN
                : CollectiveFunction.Algorithm.COLLNET_DIRECT;
    }

    /** Provider of Millrace's own network. The ranks reduce for each other, on the threads that issue the requests. */
    record MeshProvider(Network network, Listener here) implements CollectiveNetworkProvider {

        /** Base of the keys of this network's connections. The connections of transports have other keys. */
        private static final long KEY = 0x434f4c4c00000000L;

        @Override
        public String name() {
            return "mesh";
        }

        @Override
        public boolean reduceSupport(DataType type, ReduceOp op) {
            return MeshNetwork.reduces(op);
        }

        @Override
        public Place listen(int number) {
            return new Place() {
                @Override
                public byte[] handle() {
                    return here.address();
                }

                @Override
                public Pending<CollectiveNetwork> connect(byte[][] handles, int rank) {
                    return FullMesh.begin(network, here, handles, rank, KEY + number, 0)
                            .map(made -> new MeshNetwork(rank, network, List.of(made), null));
                }

                @Override
                public void close() {
                    // Closes nothing, because the communicator owns the listener.
                }
            };
        }
    }
}
