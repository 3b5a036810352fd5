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
 * Accepts clients, and assigns them to the expected connections. The listener creates no thread: each call that polls
 * one of the pending connections advances all of them. A caller may provide a thread by {@link #attend}.
 *
 * <p>
 * A client may have a valid hello with a key that is not expected yet, because a peer can be faster than this process.
 * Such a client is kept until its deadline.
 */
public abstract class KeyedListener<C extends IncomingHello> implements Listener {

    /** Length of the operating system's queue of connections that are not accepted yet. */
    protected static final int BACKLOG = 4096;
    /** Remedy if the process cannot listen on an address of this machine. */
    protected static final String OTHER_ADDRESS =
            "; choose another with MILLRACE_SOCKET_ADDRESSES or NCCL_SOCKET_IFNAME";

    private static final Logger LOG = LogManager.getLogger(KeyedListener.class);
    /**
     * Maximum number of clients that have not identified themselves. If there are more, {@link Admission} drops some.
     */
    static final int MAX_UNPROVEN = 256;
    /**
     * Time limit for the hello of a client that has passed the challenge, which precedes TLS. With scarce cores or a
     * slow link, a TLS handshake may need half a minute. If the listener closed the stream after a shorter time, the
     * client would start again, and would never connect.
     */
    private static final Duration TLS_HANDSHAKE = Duration.ofMinutes(2);
    /** Maximum number of remembered keys. Without a limit, they would accumulate as long as the communicator exists. */
    static final int MAX_USED_KEYS = 16_384;
    /** Minimum number of times that a client is checked before its deadline, see {@link #watched}. */
    private static final int LOOKS = 10;
    /**
     * Pause between two checks of {@link #attend}, in nanoseconds. One check covers all clients, so the clients that
     * arrive during a pause share the cost of one check. {@link #SHORT_PAUSE_NANOS} applies while more clients may be
     * waiting. During a pause other threads can poll.
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
    /** Most recent keys, oldest first. A late client with a key that was removed is refused as unknown. */
    private final Set<ConnectionKey> usedKeys = new LinkedHashSet<>();
    private final Admission<C> unproven = new Admission<>(MAX_UNPROVEN, new Arrivals());
    private final List<C> early = new ArrayList<>();
    /**
     * Clock of the clients' deadlines, in nanoseconds. The clock hardly advances while no thread reads the clients'
     * messages, so that a client does not miss its deadline during that time. No thread reads the messages if no
     * connection is expected, or if this process has no core.
     */
    private long watched;
    private long lastLook = System.nanoTime();
    private boolean closed;
    /** Selector of the thread in {@link #attend}; null before the first call of that method. */
    private @Nullable Selector selector;

    /** Creates a listener. The listener owns the bound, non-blocking channels from now on. */
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
     * @param receiveBufferBytes buffer size of accepted streams; 0 for the system's choice
     * @param purpose            use of the port, see {@link ListeningPorts}
     * @param advice             end of the error text, with a remedy after a semicolon; may be empty
     */
    protected static ServerSocketChannel bind(InetSocketAddress where, int receiveBufferBytes, String purpose,
            String advice) {
        ServerSocketChannel server = null;
        try {
            server = ServerSocketChannel.open();
            server.configureBlocking(false);
            if (receiveBufferBytes > 0) {
                // The buffer size is set before the bind, because accepted streams inherit it, and TCP negotiates the
                // window scale while the streams connect.
                server.setOption(StandardSocketOptions.SO_RCVBUF, receiveBufferBytes);
            }
            server.bind(where, BACKLOG);
            ListeningPorts.opened(server, purpose, "");
            return server;
        } catch (IOException e) {
            ConnectionState.closeQuietly(server);
            throw new ConnectionException(
                    "cannot listen on " + where.getAddress().getHostAddress()
                            + (where.getPort() == 0 ? "" : " port " + where.getPort()) + ": " + e.getMessage() + advice,
                    e);
        }
    }

    /** Returns the address of a TCP server of this machine. */
    protected static InetSocketAddress boundTo(ServerSocketChannel server) {
        return (InetSocketAddress) server.socket().getLocalSocketAddress();
    }

    protected abstract ExpectedConnection<C> newExpected(ConnectionKey key);

    /**
     * Wraps a new client before it has sent anything.
     *
     * @param deadline latest time at which the client must be part of a connection, by the listener's clock
     * @throws Refusal if the client cannot be a peer
     */
    protected abstract C newClient(SocketChannel channel, long deadline) throws IOException, Refusal;

    /**
     * Replies to a client if its hello asks only for information. Such a client needs no connection, and the result is
     * true.
     */
    protected boolean isServed(C client) {
        return false;
    }

    /** Releases the subclass's resources. Called once, after all clients and channels are closed. */
    protected void released() {
        // Does nothing, for a subclass without own resources.
    }

    @Override
    public final synchronized Pending<FrameReceiver> expect(ConnectionKey key) {
        checkOpen();
        if (expected.containsKey(key) || !usedKeys.add(key)) {
            throw new IllegalArgumentException(
                    name + ": key " + key + " was expected before; a key serves one connection");
        }
        ExpectedConnection<C> connection = newExpected(key);
        expected.put(key, connection);
        if (usedKeys.size() > MAX_USED_KEYS) {
            usedKeys.remove(usedKeys.iterator().next());
        }
        return connection;
    }

    /** {@inheritDoc} During this call, threads that poll a pending connection also advance all clients. */
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
            LOG.warn("{}: clients are accepted only while a connection is awaited: {}", name, e.getMessage());
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

    /**
     * Returns the time until clients that have sent nothing must be checked, in milliseconds; 0 without such clients.
     */
    private synchronized long lookMillis() {
        return unproven.isEmpty() ? 0 : Math.max(1, handshakeDeadline.toMillis() / LOOKS);
    }

    private synchronized boolean advanceIfOpen() {
        try {
            return !closed && advance();
        } catch (ConnectionException shortage) {
            // The thread that polls a pending connection receives the exception.
            return false;
        }
    }

    /** Advances all connections without waiting. Returns whether more clients may be waiting to be accepted. */
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
                } else {
                    Duration limit = client.knowsSecret() ? TLS_HANDSHAKE : handshakeDeadline;
                    if (client.isLate(now - limit.minus(handshakeDeadline).toNanos())) {
                        throw new Refusal(null, "it sent no complete hello in " + limit);
                    }
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

    /**
     * Advances the clients' clock by the time since the last call, at most by 1/{@link #LOOKS} of the handshake
     * deadline. Returns the clock's time.
     */
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

    /**
     * Assigns a client to its connection. Returns false if the client must be kept, because its key is not expected.
     */
    private boolean sort(C client, long now) throws Refusal {
        ConnectionKey key = client.key();
        ExpectedConnection<C> connection = expected.get(key);
        if (connection != null) {
            // A client that starts again, for instance without one of its rails, closes its streams and connects again
            // immediately. This call drops the client's earlier streams.
            connection.dropDeparted(drops::dropped);
            connection.add(client);
            return true;
        }
        if (usedKeys.contains(key)) {
            throw new Refusal(HandshakeReply.KEY_TAKEN,
                    "another client connected with key " + key + ", or it was given up");
        }
        if (client.isLate(now)) {
            throw new Refusal(HandshakeReply.UNKNOWN_KEY, "no connection is expected with key " + key);
        }
        client.checkWaits();
        return false;
    }

    private void drop(C client, Refusal why) {
        client.refuse(why);
        drops.dropped(client, why);
    }

    /** Removes a connection that was established or given up. A later connection must use another key. */
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
            // The selector is closed before the servers, because an open selector keeps the servers' ports open.
            ConnectionState.closeQuietly(selector);
            servers.forEach(ListeningPorts::close);
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
     * Logs refused clients, at most a few lines in a period, so that many refused clients do not flood the log. Guarded
     * by the listener's lock.
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
