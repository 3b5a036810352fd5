package org.millrace.net.connection;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.Listener;
import org.millrace.net.Pending;
import org.millrace.net.connection.HandshakeReply.Refusal;

/**
 * Accepts clients, and sorts them into the connections that are expected. There is no thread unless one
 * {@linkplain #attend attends}: each call that polls one of the pending connections moves all of them.
 *
 * <p>
 * A client whose hello is in order but whose key nobody expects yet is kept until its deadline, as a peer may be faster
 * than this side.
 */
public abstract class KeyedListener<C extends IncomingHello> implements Listener {

    /** A listener's queue in the system. */
    protected static final int BACKLOG = 4096;
    /** What to do where an address of this machine cannot be listened on. */
    protected static final String OTHER_ADDRESS =
            "; choose another with MILLRACE_SOCKET_ADDRESSES or NCCL_SOCKET_IFNAME";

    private static final Logger LOG = LogManager.getLogger(KeyedListener.class);
    /** Clients that have not said who they are: where there are more, some are dropped. */
    static final int MAX_UNPROVEN = 256;
    /** A listener lives as long as its communicator, and makes connections all the time. */
    static final int MAX_USED_KEYS = 16_384;
    /** How many looks, at least, a client's time is made of: see {@link #watched}. */
    private static final int LOOKS = 10;
    /**
     * Between two looks of {@link #attend}, which are at all clients each: as few are worth one where few come. The
     * short one lets those who poll come in between.
     */
    private static final long PAUSE_NANOS = 20_000_000;
    private static final long SHORT_PAUSE_NANOS = 1_000_000;

    private final OpenResources network;
    private final String name;
    private final byte[] secret;
    private final Duration handshakeDeadline;
    private final List<ServerSocketChannel> servers;
    private final DropLog drops = new DropLog();
    private final Map<ConnectionKey, ExpectedConnection<C>> expected = new HashMap<>();
    /** The latest, oldest first: who comes late with an older one than these finds a key that nobody knows. */
    private final Set<ConnectionKey> usedKeys = new LinkedHashSet<>();
    private final Admission<C> unproven = new Admission<>(MAX_UNPROVEN, new Arrivals());
    private final List<C> early = new ArrayList<>();
    /**
     * The clock of the clients' deadlines, nanoseconds. While nobody looks, as nobody expects a connection, or as this
     * process gets no core, it hardly moves on: what a client said meanwhile was not heard.
     */
    private long watched;
    private long lastLook = System.nanoTime();
    private boolean closed;
    /** Of {@link #attend}; null if nobody attends. */
    private @Nullable Selector selector;

    /** Takes bound, non-blocking channels over. */
    protected KeyedListener(OpenResources network, String name, byte[] secret, Duration handshakeDeadline,
            List<ServerSocketChannel> servers) {
        this.network = network;
        this.name = name;
        this.secret = secret;
        this.handshakeDeadline = handshakeDeadline;
        this.servers = List.copyOf(servers);
    }

    /**
     * Listens on an address of this machine.
     *
     * @param receiveBufferBytes of accepted streams; 0 for the system's choice
     * @param advice             begins with a semicolon; or empty
     */
    protected static ServerSocketChannel bind(InetSocketAddress where, int receiveBufferBytes, String advice) {
        ServerSocketChannel server = null;
        try {
            server = ServerSocketChannel.open();
            server.configureBlocking(false);
            if (receiveBufferBytes > 0) {
                // Before the bind: accepted streams inherit it, and the window's scale is agreed on while they connect.
                server.setOption(StandardSocketOptions.SO_RCVBUF, receiveBufferBytes);
            }
            return server.bind(where, BACKLOG);
        } catch (IOException e) {
            ConnectionState.closeQuietly(server);
            throw new ConnectionException(
                    "cannot listen on " + where.getAddress().getHostAddress()
                            + (where.getPort() == 0 ? "" : " port " + where.getPort()) + ": " + e.getMessage() + advice,
                    e);
        }
    }

    /** Where a TCP server of this machine's is. */
    protected static InetSocketAddress boundTo(ServerSocketChannel server) {
        return (InetSocketAddress) server.socket().getLocalSocketAddress();
    }

    /** A connection of this network that a client with this key may come for. */
    protected abstract ExpectedConnection<C> newExpected(ConnectionKey key);

    /**
     * Looks at a new client before it has said anything.
     *
     * @param deadline by the listener's clock: when it must be part of a connection
     * @throws Refusal if it cannot be a peer
     */
    protected abstract C newClient(SocketChannel channel, long deadline) throws IOException, Refusal;

    /** Whether a client with a hello wanted no more than an answer, which it has now. */
    protected boolean isServed(C client) {
        return false;
    }

    /** Called once, when everything is closed. */
    protected void released() {
        // nothing is left
    }

    @Override
    public final synchronized Pending<FrameReceiver> expect(ConnectionKey key) {
        checkOpen();
        if (expected.containsKey(key) || !usedKeys.add(key)) {
            throw new IllegalArgumentException(
                    name + ": key " + key + " was expected before; a key is good for one connection");
        }
        ExpectedConnection<C> connection = newExpected(key);
        expected.put(key, connection);
        if (usedKeys.size() > MAX_USED_KEYS) {
            usedKeys.remove(usedKeys.iterator().next());
        }
        return connection;
    }

    /** {@inheritDoc} Those who poll do the same meanwhile. */
    @Override
    public final void attend() {
        try (Selector arrivals = Selector.open()) {
            if (register(arrivals)) {
                while (arrivals.isOpen()) {
                    arrivals.select(key -> {}, lookMillis());
                    LockSupport.parkNanos(advanceIfOpen() ? SHORT_PAUSE_NANOS : PAUSE_NANOS);
                }
            }
        } catch (ClosedSelectorException over) {
            LOG.trace("{} was closed", name);
        } catch (IOException e) {
            LOG.warn("{}: clients are let in only while a connection is awaited: {}", name, e.getMessage());
        }
    }

    private synchronized boolean register(Selector arrivals) throws IOException {
        if (!closed) {
            selector = arrivals;
            for (ServerSocketChannel server : servers) {
                server.register(arrivals, SelectionKey.OP_ACCEPT);
            }
        }
        return !closed;
    }

    /** Until the next look at clients that say nothing; 0 where there are none. */
    private synchronized long lookMillis() {
        return unproven.isEmpty() ? 0 : Math.max(1, handshakeDeadline.toMillis() / LOOKS);
    }

    private synchronized boolean advanceIfOpen() {
        try {
            return !closed && advance();
        } catch (ConnectionException shortage) {
            return false; // whoever polls is told
        }
    }

    /** Does what can be done for all connections without waiting; returns whether more clients may wait. */
    final synchronized boolean advance() {
        checkOpen();
        expected.values().forEach(connection -> connection.dropDeparted(drops::dropped));
        long now = look();
        boolean more = acceptClients();
        for (C client : unproven.all()) {
            try {
                if (client.read(secret)) {
                    unproven.remove(client);
                    if (!isServed(client)) {
                        early.add(client);
                    }
                } else if (client.isLate(now)) {
                    throw new Refusal(null, "it said nothing, or not all of a hello, in " + handshakeDeadline);
                }
            } catch (Refusal e) {
                unproven.remove(client);
                drop(client, e);
            }
        }
        for (Iterator<C> each = early.iterator(); each.hasNext();) {
            C client = each.next();
            try {
                if (sort(client, now)) {
                    each.remove();
                }
            } catch (Refusal e) {
                each.remove();
                drop(client, e);
            }
        }
        return more;
    }

    /** Moves the clients' clock on, by what the last look counts at the most. */
    private long look() {
        long now = System.nanoTime();
        watched += Math.min(now - lastLook, handshakeDeadline.toNanos() / LOOKS);
        lastLook = now;
        return watched;
    }

    private boolean acceptClients() {
        boolean more = false;
        for (ServerSocketChannel server : servers) {
            more |= unproven.accept(server::accept);
        }
        IOException shortage = unproven.shortageOf(handshakeDeadline.toNanos());
        if (shortage != null) {
            throw new ConnectionException(name + ": cannot accept connections: " + shortage.getMessage()
                    + "; too many open files? See ulimit -n", shortage);
        }
        return more;
    }

    /** Gives a client to the connection that it is for; false to keep it. */
    private boolean sort(C client, long now) throws Refusal {
        ConnectionKey key = client.key();
        ExpectedConnection<C> connection = expected.get(key);
        if (connection != null) {
            // A client that begins again, as without one of its rails, closes what it had, and comes back at once.
            connection.dropDeparted(drops::dropped);
            connection.add(client);
            return true;
        }
        if (usedKeys.contains(key)) {
            throw new Refusal(HandshakeReply.KEY_TAKEN,
                    "another client connected with key " + key + ", or it was given up");
        }
        if (client.isLate(now)) {
            throw new Refusal(HandshakeReply.UNKNOWN_KEY, "nobody expects key " + key);
        }
        client.checkWaits();
        return false;
    }

    private void drop(C client, Refusal why) {
        client.refuse(why);
        drops.dropped(client, why);
    }

    /** Forgets a connection that was made or given up; its key stays used. */
    final synchronized void forget(ConnectionKey key) {
        expected.remove(key);
    }

    @Override
    public final synchronized long dropped() {
        return drops.dropped;
    }

    private void checkOpen() {
        if (closed) {
            throw new ConnectionException(name + ": was closed");
        }
    }

    @Override
    public final void close() {
        List<ExpectedConnection<C>> left;
        synchronized (this) {
            if (closed) {
                return;
            }
            closed = true;
            left = List.copyOf(expected.values());
            unproven.all().forEach(IncomingHello::close);
            unproven.closeReserve();
            early.forEach(IncomingHello::close);
            ConnectionState.closeQuietly(selector); // first: it would keep the servers' ports open
            servers.forEach(ConnectionState::closeQuietly);
        }
        left.forEach(connection -> connection.end("its listener was closed"));
        network.forget(this);
        released();
    }

    @Override
    public final String toString() {
        return name;
    }

    private final class Arrivals implements Admission.Host<C> {

        @Override
        public @Nullable C arrived(SocketChannel channel) throws IOException {
            try {
                return newClient(channel, watched + handshakeDeadline.toNanos());
            } catch (Refusal e) {
                drops.dropped(channel, e);
                return null;
            }
        }

        @Override
        public boolean knowsSecret(C client) {
            return client.knowsSecret();
        }

        @Override
        public void drop(C client, String why) {
            KeyedListener.this.drop(client, new Refusal(null, why));
        }
    }

    /**
     * A few lines in a while, however many clients are refused: they must not flood the log. Guarded by the listener.
     */
    private final class DropLog {

        private static final int LINES_PER_INTERVAL = 10;
        private static final long INTERVAL_NANOS = 10_000_000_000L;

        private long intervalStart = System.nanoTime();
        private int lines;
        private long suppressed;
        private long dropped;

        void dropped(Object client, Refusal why) {
            dropped++;
            long now = System.nanoTime();
            if (now - intervalStart > INTERVAL_NANOS) {
                intervalStart = now;
                lines = 0;
            }
            if (lines == LINES_PER_INTERVAL) {
                suppressed++;
                return;
            }
            lines++;
            LOG.warn("{} dropped a connection from {}: {}{}", name, client, why.getMessage(),
                    suppressed == 0 ? "" : " (" + suppressed + " more were dropped in between)");
            suppressed = 0;
        }
    }
}
