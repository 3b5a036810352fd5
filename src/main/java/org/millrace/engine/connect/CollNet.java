package org.millrace.engine.connect;

import java.nio.ByteBuffer;
import java.util.List;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.millrace.DataType;
import org.millrace.MillraceException;
import org.millrace.ReduceOp;
import org.millrace.abi.KernelChannel;
import org.millrace.config.Configuration;
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
import org.millrace.proxy.ConnectionName;
import org.millrace.proxy.ProxyConnection;
import org.millrace.transport.collnet.CollNetConnection;
import org.millrace.transport.collnet.CollNetConnection.CollNetOp;
import org.millrace.transport.collnet.CollectiveNetwork;

/** All-reduces that go through a network that reduces: which ones, and how they get there. */
public final class CollNet implements AutoCloseable {

    private static final Logger LOG = LogManager.getLogger(CollNet.class);

    private final CollNetConnection connection;
    private final long maxBytes;

    private CollNet(DeviceCommunicator device, CollNetConnection connection, long maxBytes) {
        this.connection = connection;
        this.maxBytes = maxBytes;
        String self = "rank " + device.rank();
        int network = device.ranks();
        DeviceChannel channel = device.channel(0);
        channel.view().network(network);
        channel.send(network, KernelChannel.COLLECTIVE)
                .connect(new SendPort(new ConnectionName(self, "the aggregator", self + " -> aggregator"),
                        connection.send()));
        channel.receive(network, KernelChannel.COLLECTIVE)
                .connect(new ReceivePort(new ConnectionName(self, "the aggregator", self + " <- aggregator"),
                        connection.receive()));
    }

    /**
     * Collective: sets the network up if all ranks want it; null if it is off.
     *
     * @param resources closed at the end: the aggregator is added to it, and the connection
     */
    public static CollNet open(ControlPlane control, Configuration configuration, EngineOptions options,
            DeviceCommunicator device, Network network, Listener here, CommunicatorFailure failure,
            EngineResources resources) {
        boolean wanted = configuration.get(Settings.COLLNET_ENABLE);
        long maxBytes = configuration.get(Settings.COLLNET_MAX_BYTES);
        byte[] address = here.address();
        byte[][] all = control.allGather(ByteBuffer.allocate(1 + Long.BYTES + address.length)
                .put((byte) (wanted ? 1 : 0))
                .putLong(maxBytes)
                .put(address)
                .array());
        byte[][] addresses = new byte[all.length][];
        for (int rank = 0; rank < all.length; rank++) {
            RankLetter theirs = new RankLetter(rank, "its way to the aggregator", all[rank]);
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
            addresses[rank] = theirs.bytes("a listener's address", address.length);
            theirs.end();
        }
        CollectiveNetwork collective =
                new AggregatorSetup(control, options, network, here, addresses, failure, resources).connect();
        CollNetConnection connection = new CollNetConnection(control.rank(), network, collective, options.layout(),
                options.firstStep(), failure);
        LOG.info("rank {}: all-reduces of up to {} bytes go through the aggregator of rank 0", control.rank(),
                maxBytes);
        return resources.add(new CollNet(device, connection, maxBytes));
    }

    public List<ProxyConnection> proxies() {
        return connection.proxies();
    }

    /** Whether an all-reduce goes this way; the same on all ranks. */
    public boolean takes(long bytes, DataType type, ReduceOp op) {
        return bytes <= maxBytes && connection.network().reduceSupport(type, op);
    }

    /** Announces an all-reduce that {@link #takes} said yes to. */
    public void announce(DataType type, ReduceOp op, long steps) {
        connection.announce(new CollNetOp(type, (ReduceOp.BuiltIn) op, steps));
    }

    @Override
    public void close() {
        connection.close();
    }
}
