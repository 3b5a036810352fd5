package org.millrace.collnet.aggregator;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.collnet.CollectiveNetwork;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Settings;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Pending;
import org.millrace.net.socket.SocketNetwork;
import org.millrace.net.socket.handshake.NamedHost;
import org.millrace.net.socket.handshake.SocketListener;
import org.millrace.net.socket.stream.SocketOptions;

/** A rank's way to its aggregators: it connects to each, says which rank it is, and is connected back. */
public final class AggregatorConnect implements Pending<CollectiveNetwork> {

    private final int ranks;
    private final int rank;
    private final SocketNetwork network;
    private final Listener here;
    private final Arena arena = Arena.ofShared();
    private final MemoryRegion address;
    private final List<Way> ways = new ArrayList<>();
    private boolean made;

    private static final class Way {
        private final String to;
        private final Pending<FrameSender> connecting;
        private final Pending<FrameReceiver> accepting;
        private @Nullable FrameSender sender;
        private @Nullable FrameReceiver receiver;

        Way(String to, Pending<FrameSender> connecting, Pending<FrameReceiver> accepting) {
            this.to = to;
            this.connecting = connecting;
            this.accepting = accepting;
        }
    }

    /**
     * Begins to connect.
     *
     * @param aggregators where they are: the same, in the same order, on every rank
     * @param secret      what they know their ranks by; empty for nothing
     * @param group       a number that no other group has, random, and the same on every rank
     */
    public AggregatorConnect(SocketOptions options, List<InetSocketAddress> aggregators, String secret, long group,
            int ranks, int rank) {
        this.ranks = ranks;
        this.rank = rank;
        network = new SocketNetwork(options);
        boolean begun = false;
        try {
            here = network.listen();
            address = network.register(arena.allocate(Listener.ADDRESS_BYTES, Long.BYTES));
            MemorySegment.copy(here.address(), 0, address.segment(), ValueLayout.JAVA_BYTE, 0, Listener.ADDRESS_BYTES);
            byte[] known = AggregatorFrame.secret(secret);
            for (int i = 0; i < aggregators.size(); i++) {
                InetSocketAddress where = aggregators.get(i);
                ways.add(new Way("the aggregator at " + where.getHostString() + ":" + where.getPort(),
                        network.connect(SocketListener.address(where, known),
                                AggregatorFrame.toAggregator(group, rank)),
                        here.expect(AggregatorFrame.toRank(group, rank, i))));
            }
            begun = true;
        } finally {
            if (!begun) {
                network.close();
                arena.close();
            }
        }
    }

    /**
     * Where aggregators are, as the user says it.
     *
     * @throws ConfigurationException if that is not host and port, or there is no such host
     */
    public static List<InetSocketAddress> parse(String text, SocketOptions sockets) {
        List<InetSocketAddress> all = new ArrayList<>();
        for (String each : text.split(",", -1)) {
            all.add(place(Settings.COLLNET_AGGREGATORS.name(), each.strip(), sockets,
                    host -> host.addresses().getFirst()));
        }
        return List.copyOf(all);
    }

    /**
     * A host and a port.
     *
     * @param what    names what is read, for messages
     * @param sockets which addresses this machine announces
     * @param address which of the host's is meant
     * @throws ConfigurationException if that is not host and port, or there is no such host
     */
    public static InetSocketAddress place(String what, String text, SocketOptions sockets,
            Function<NamedHost, InetAddress> address) {
        int colon = text.lastIndexOf(':');
        String host = colon < 0 ? "" : text.substring(0, colon).replaceAll("^\\[(.*)]$", "$1");
        String port = text.substring(colon + 1);
        if (host.isEmpty() || !port.matches("\\d{1,5}") || Integer.parseInt(port) > 65_535) {
            throw new ConfigurationException(
                    what + "=" + text + ": it must be HOST:PORT, as in 10.0.0.7:7070 or [::1]:7070");
        }
        try {
            return new InetSocketAddress(address.apply(NamedHost.of(host, sockets)), Integer.parseInt(port));
        } catch (UnknownHostException e) {
            throw new ConfigurationException(what + "=" + text + ": there is no host " + host);
        }
    }

    @Override
    public @Nullable CollectiveNetwork poll() {
        boolean complete = true;
        for (int i = 0; i < ways.size(); i++) {
            Way way = ways.get(i);
            try {
                if (way.sender == null) {
                    way.sender = way.connecting.poll();
                    if (way.sender != null) {
                        way.sender.offer(hello(i), address, 0);
                    }
                }
                if (way.sender != null) {
                    way.sender.progress();
                }
                way.receiver = way.receiver == null ? way.accepting.poll() : way.receiver;
            } catch (MillraceException failed) {
                throw new ConnectionException("rank " + rank + " cannot connect with " + way.to + ": "
                        + failed.getMessage() + "; is 'millrace collnet aggregator' running there, with the same "
                        + "MILLRACE_SECRET and MILLRACE_TLS?", failed);
            }
            complete &= way.receiver != null && way.sender.framesCompleted() == 1;
        }
        if (!complete) {
            return null;
        }
        made = true;
        here.close();
        address.close();
        arena.close();
        return new AggregatorNetwork(rank, network,
                ways.stream().map(way -> new AggregatorLink(way.to, way.sender, way.receiver)).toList());
    }

    private FrameHeader hello(int aggregator) {
        FrameHeader hello = new FrameHeader();
        hello.word(0, AggregatorFrame.HELLO);
        hello.word(1, ranks);
        hello.word(2, rank);
        hello.word(3, aggregator);
        hello.payloadBytes(Listener.ADDRESS_BYTES);
        return hello;
    }

    @Override
    public void close() {
        if (!made) {
            made = true;
            network.close();
            address.close();
            arena.close();
        }
    }
}
