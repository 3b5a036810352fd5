package org.millrace.engine.connect;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
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
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Settings;
import org.millrace.device.channel.DeviceChannel;
import org.millrace.device.channel.ReceivePort;
import org.millrace.device.channel.SendPort;
import org.millrace.device.work.DeviceCommunicator;
import org.millrace.engine.bootstrap.ControlPlane;
import org.millrace.engine.bootstrap.RankLetter;
import org.millrace.engine.options.EngineOptions;
import org.millrace.net.Listener;
import org.millrace.net.Network;
import org.millrace.proxy.ProxyConnection;
import org.millrace.transport.collnet.CollNetConnection;
import org.millrace.transport.collnet.CollNetConnection.CollNetOp;

/** Collectives that go through a network that reduces: which ones, and how they get there. */
public final class CollNet implements AutoCloseable {

    private static final Logger LOG = LogManager.getLogger(CollNet.class);
    /** What such a network can carry out. */
    public static final Set<Operation> OPERATIONS =
            Set.of(Operation.ALL_REDUCE, Operation.ALL_GATHER, Operation.REDUCE_SCATTER);

    /** One for each channel. */
    private final List<CollNetConnection> connections = new ArrayList<>();
    private final EngineOptions options;
    private final int ranks;
    private final long maxBytes;

    private CollNet(EngineOptions options, int ranks, long maxBytes) {
        this.options = options;
        this.ranks = ranks;
        this.maxBytes = maxBytes;
    }

    /** Adds a channel's connection, and shows it to the device. */
    private void add(DeviceCommunicator device, CollNetConnection connection) {
        int network = device.ranks();
        int number = connections.size();
        DeviceChannel channel = device.channel(number);
        channel.view().network(network);
        channel.send(network, KernelChannel.COLLECTIVE)
                .connect(new SendPort(CollNetConnection.name(device.rank(), number, "->"), connection.send()));
        channel.receive(network, KernelChannel.COLLECTIVE)
                .connect(new ReceivePort(CollNetConnection.name(device.rank(), number, "<-"), connection.receive()));
        connections.add(connection);
    }

    /**
     * Collective: sets the network up if all ranks want it; null if it is off.
     *
     * @param resources closed at the end: the connections are added to it
     */
    public static @Nullable CollNet open(ControlPlane control, Configuration configuration, EngineOptions options,
            DeviceCommunicator device, Network network, Listener here, CommunicatorFailure failure,
            EngineResources resources) {
        boolean wanted = configuration.get(Settings.COLLNET_ENABLE);
        long maxBytes = configuration.get(Settings.COLLNET_MAX_BYTES);
        TreeMap<String, CollectiveNetworkProvider> providers = wanted ? found() : new TreeMap<>();
        Set<String> common = agree(control, wanted, maxBytes, providers.keySet());
        if (common == null) {
            if (options.algorithms().needsCollNet()) {
                throw new ConfigurationException(
                        Settings.ALGORITHMS.name() + " leaves collnet alone for allreduce, and "
                                + Settings.COLLNET_ENABLE.name() + "=1 is not set on every rank");
            }
            return null;
        }
        CollectiveNetworkProvider provider =
                common.isEmpty() ? new MeshProvider(network, here) : providers.get(common.iterator().next());
        CollNet made = resources.add(new CollNet(options, control.size(), maxBytes));
        for (int channel = 0; channel < options.channels(); channel++) {
            try (CollectiveNetworkProvider.Place place = provider.listen(channel)) {
                CollectiveNetwork collective = place.connect(control.allGather(place.handle()), control.rank(),
                        options.connectDeadline(),
                        () -> control.failure() == null ? null : new MillraceException(control.failure().message()));
                made.add(device, new CollNetConnection(control.rank(), channel, collective, options.layout(),
                        options.firstStep(), failure));
                control.barrier(); // no rank may begin, and perhaps end, before its peers are connected
            }
        }
        LOG.info("rank {}: collectives of up to {} bytes go through the collective network {}, {} channels",
                control.rank(), maxBytes, provider.name(), options.channels());
        return made;
    }

    /** Names of networks of other jars that all ranks have; null if not all ranks want any. */
    private static @Nullable Set<String> agree(ControlPlane control, boolean wanted, long maxBytes, Set<String> names) {
        byte[] text = String.join("\n", names).getBytes(StandardCharsets.UTF_8);
        byte[][] all = control.allGather(ByteBuffer.allocate(1 + Long.BYTES + Integer.BYTES + text.length)
                .put((byte) (wanted ? 1 : 0))
                .putLong(maxBytes)
                .putInt(text.length)
                .put(text)
                .array());
        Set<String> common = new TreeSet<>(names);
        for (int rank = 0; rank < all.length; rank++) {
            RankLetter theirs = new RankLetter(rank, "its collective networks", all[rank]);
            if (!theirs.flag()) {
                if (wanted) {
                    LOG.warn("rank {}: NCCL_COLLNET_ENABLE=1 has no effect, as it is not set on rank {}",
                            control.rank(), rank);
                }
                return null;
            }
            long theirMax = theirs.longNumber();
            if (wanted && theirMax != maxBytes) {
                throw new MillraceException(
                        Settings.COLLNET_MAX_BYTES.name() + " is " + maxBytes + " on rank " + control.rank() + " and "
                                + theirMax + " on rank " + rank + ": it must be the same on all ranks");
            }
            common.retainAll(Set.of(theirs.text("names of networks").split("\n")));
            theirs.end();
        }
        return common;
    }

    /** By name. One that cannot be loaded is left out: this rank then says to the others that it does not have it. */
    private static TreeMap<String, CollectiveNetworkProvider> found() {
        TreeMap<String, CollectiveNetworkProvider> found = new TreeMap<>();
        for (var provider : ServiceLoader.load(CollectiveNetworkProvider.class).stream().toList()) {
            try {
                CollectiveNetworkProvider made = provider.get();
                found.put(made.name(), made);
            } catch (ServiceConfigurationError e) {
                LOG.warn("a collective network is left out: {}", e.getMessage());
            }
        }
        return found;
    }

    /** By channel: both proxies of a channel are one agent's. */
    public List<ProxyConnection> proxies() {
        return connections.stream().flatMap(each -> each.proxies().stream()).collect(Collectors.toList());
    }

    /**
     * Whether a collective goes this way; the same on all ranks.
     *
     * @param bytes of each rank
     * @throws MillraceException if it can go no other, by what the user has set, and not this one
     */
    public boolean takes(Operation operation, long bytes, DataType type, ReduceOp op) {
        if (!OPERATIONS.contains(operation) || !options.algorithms().allowsCollNet(operation)) {
            return false;
        }
        boolean supported = !operation.reduces() || connections.getFirst().reduceSupport(type, op);
        boolean alone = options.algorithms().needsCollNet() && operation == Operation.ALL_REDUCE;
        if (alone && !supported) {
            throw new MillraceException(Settings.ALGORITHMS.name() + " leaves collnet alone for allreduce, and the"
                    + " collective network does not reduce " + type.label() + " by " + op.label()
                    + ": allow ring, too");
        }
        return supported && (alone || bytes * (operation == Operation.ALL_REDUCE ? 1 : ranks) <= maxBytes);
    }

    /** Announces a channel's part of a collective that {@link #takes} said yes to. */
    public void announce(int channel, CollNetOp op) {
        connections.get(channel).announce(op);
    }

    @Override
    public void close() {
        connections.forEach(CollNetConnection::close);
    }
}
