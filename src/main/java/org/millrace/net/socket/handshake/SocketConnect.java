package org.millrace.net.socket.handshake;

import java.net.InetSocketAddress;
import java.nio.channels.SocketChannel;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameSender;
import org.millrace.net.Pending;
import org.millrace.net.base.HandshakeReply;
import org.millrace.net.socket.SocketNetwork;
import org.millrace.net.socket.rails.Pieces;
import org.millrace.net.socket.rails.Rail;
import org.millrace.net.socket.rails.RailSender;
import org.millrace.net.socket.stream.SocketOptions;
import org.millrace.net.socket.stream.StreamSet;
import org.millrace.net.socket.stripes.StripedSender;
import org.millrace.net.socket.stripes.Stripes;

/**
 * A connection to a listener in the making: if the listener has several addresses, first the question for them, then
 * all streams of all rails at once. A rail that cannot be made is left out, if there is another.
 */
public final class SocketConnect implements Pending<FrameSender> {

    private static final Logger LOG = LogManager.getLogger(SocketConnect.class);

    private final SocketNetwork network;
    private final SocketOptions options;
    private final ConnectionKey key;
    private final String name;
    private final byte[] secret;
    private final long deadline;
    /** Asks for the listener's addresses; null if they are known. */
    private RailQuery query;
    private List<RailAddresses> rails;
    private final List<OutgoingStream> streams = new ArrayList<>();
    private boolean leftOut;
    private ConnectionException failure;
    private boolean done;

    public SocketConnect(SocketNetwork network, byte[] address, ConnectionKey key) {
        this.network = network;
        this.key = key;
        options = network.options();
        InetSocketAddress to = AddressFormat.decode(address);
        name = "socket connection " + key + " to " + OutgoingStream.name(to);
        deadline = System.nanoTime() + options.connectDeadline().toNanos();
        secret = AddressFormat.secret(address);
        try {
            if (AddressFormat.rails(address) > 1) {
                query = new RailQuery(new OutgoingStream(null, to, hello(0, 0, 0, 0, 1), options));
            } else {
                begin(List.of(to));
            }
        } catch (ConnectionException e) {
            throw fail(e);
        }
    }

    private void begin(List<InetSocketAddress> listener) {
        List<RailAddresses.Local> locals = network.locals();
        if (listener.size() == 1 && locals.size() <= 1) {
            // As a host with one interface does: the system knows best which address is this side's.
            locals = List.of();
        }
        rails = new ArrayList<>(RailAddresses.pair(locals, listener));
        open();
    }

    /** Opens all streams of all rails; those of one rail are neighbours. */
    private void open() {
        long attempt = new SecureRandom().nextLong();
        int perRail = Math.max(Math.min(options.streams(), Stripes.MAX_STREAMS / rails.size()), 1);
        int count = perRail * rails.size();
        for (int stream = 0; stream < count; stream++) {
            RailAddresses rail = rails.get(stream / perRail);
            StreamHello hello = hello(attempt, stream, count, stream / perRail, rails.size());
            try {
                streams.add(new OutgoingStream(rail.local(), rail.remote(), hello, options));
            } catch (ConnectionException e) {
                leaveOut(rail, e);
                return;
            }
        }
    }

    private StreamHello hello(long attempt, int stream, int count, int rail, int railCount) {
        return new StreamHello(StreamHello.VERSION, options.stripeThreshold(), secret, key, attempt, stream, count,
                rail, railCount, options.framesInFlight());
    }

    /**
     * Begins again without a rail; throws if it is the only one. The listener makes room for the new attempt when it
     * sees the end of the old one.
     */
    private void leaveOut(RailAddresses rail, ConnectionException why) {
        if (rails.size() == 1) {
            throw why;
        }
        leftOut = true;
        rails.remove(rail);
        LOG.warn("{}: the rail {} is left out, the connection is made over {}: {}", name, rail, rails,
                why.getMessage());
        reopen();
    }

    @Override
    public synchronized FrameSender poll() {
        if (failure != null) {
            throw failure;
        }
        if (done) {
            throw new IllegalStateException(name + ": was returned or given up before");
        }
        try {
            if (!advance()) {
                checkDeadline();
                return null;
            }
        } catch (ConnectionException e) {
            throw fail(e);
        }
        done = true;
        network.forget(this);
        return connected();
    }

    private boolean advance() {
        if (query != null) {
            List<InetSocketAddress> listener = query.poll();
            if (listener == null) {
                return false;
            }
            query = null;
            begin(listener);
        }
        boolean all = !streams.isEmpty();
        for (int stream = 0; stream < streams.size(); stream++) {
            try {
                all &= streams.get(stream).advance();
            } catch (ConnectionException e) {
                failed(stream, e);
                return false;
            }
        }
        if (!all && deadline - System.nanoTime() < options.connectDeadline().toNanos() / 2) {
            leaveOutUnreachable();
        }
        return all;
    }

    private void failed(int stream, ConnectionException why) {
        HandshakeReply answer = streams.get(stream).answer();
        if (answer == HandshakeReply.KEY_TAKEN && leftOut) {
            // By our own attempt before this one, of which the listener has not seen all streams end.
            reopen();
        } else if (answer == null || answer == HandshakeReply.WRONG_SECRET) {
            // Nobody, or a listener of somebody else's at this address.
            leaveOut(railOf(stream), why);
        } else {
            throw why;
        }
    }

    private void reopen() {
        StreamSet.closeAll(channels());
        streams.clear();
        open();
    }

    private RailAddresses railOf(int stream) {
        return rails.get(stream * rails.size() / streams.size());
    }

    /**
     * Half the time is over: a rail that leads nowhere must not cost the connection, if another one leads to the
     * listener's host.
     */
    private void leaveOutUnreachable() {
        int unreachable = -1;
        boolean any = false;
        for (int stream = 0; stream < streams.size(); stream++) {
            any |= streams.get(stream).isConnected();
            unreachable = streams.get(stream).isConnected() ? unreachable : stream;
        }
        if (any && unreachable >= 0) {
            leaveOut(railOf(unreachable),
                    new ConnectionException("nobody answered in half of " + options.connectDeadline()));
        }
    }

    private FrameSender connected() {
        if (rails.size() == 1) {
            StreamSet set =
                    new StreamSet(name + (streams.size() == 1 ? "" : " (" + streams.size() + " streams)"), channels());
            StripedSender sender = new StripedSender(network, set,
                    new Stripes(streams.size(), options.stripeThreshold()), options.framesInFlight());
            network.opened(sender, sender::close);
            return sender;
        }
        Rail[] byStream = new Rail[streams.size()];
        for (int rail = 0, perRail = byStream.length / rails.size(); rail < rails.size(); rail++) {
            Arrays.fill(byStream, rail * perRail, (rail + 1) * perRail, new Rail(rail, rails.get(rail).toString()));
        }
        RailSender sender = new RailSender(network, new StreamSet(name + " (" + rails.size() + " rails)", channels()),
                byStream, Pieces.of(options.stripeThreshold(), options.framesInFlight()), options.framesInFlight(),
                System::nanoTime);
        network.opened(sender, sender::close);
        return sender;
    }

    private void checkDeadline() {
        if (System.nanoTime() - deadline > 0) {
            String waitingFor = query != null ? query.waitingFor()
                    : streams.stream()
                            .filter(stream -> !stream.isAccepted())
                            .map(OutgoingStream::waitingFor)
                            .findFirst()
                            .orElseThrow();
            throw new ConnectionException("not made in " + options.connectDeadline() + ", still waiting for "
                    + waitingFor + "; is the peer alive and accepting, and does a firewall let it through?");
        }
    }

    private ConnectionException fail(ConnectionException e) {
        failure = new ConnectionException(name + ": " + e.getMessage(), e);
        closeAll();
        return failure;
    }

    private SocketChannel[] channels() {
        return streams.stream().map(OutgoingStream::channel).toArray(SocketChannel[]::new);
    }

    private void closeAll() {
        if (query != null) {
            query.close();
        }
        StreamSet.closeAll(channels());
        network.forget(this);
    }

    @Override
    public synchronized void close() {
        if (!done && failure == null) {
            done = true;
            closeAll();
        }
    }

    @Override
    public String toString() {
        return name;
    }
}
