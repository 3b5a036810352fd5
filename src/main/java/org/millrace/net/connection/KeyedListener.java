package org.millrace.net.connection;

import java.io.IOException;
import java.net.InetSocketAddress;
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
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.Listener;
import org.millrace.net.Pending;
import org.millrace.net.connection.HandshakeReply.Refusal;

/**
 * Accepts clients, and sorts them into the connections that are expected. There is no thread: each call that polls one
 * of the pending connections moves all of them.
 *
 * <p>
 * A client whose hello is in order but whose key nobody expects yet is kept until its deadline, as a peer may be faster
 * than this side.
 */
public abstract class KeyedListener<C extends IncomingHello> implements Listener {

    /** A listener's queue in the system. */
    protected static final int BACKLOG = 4096;

    private static final Logger LOG = LogManager.getLogger(KeyedListener.class);
    /** Clients that have not said who they are: where there are more, some are dropped. */
    static final int MAX_UNPROVEN = 256;
    /** A listener lives as long as its communicator, and makes connections all the time. */
    static final int MAX_USED_KEYS = 16_384;
    /** Taken at a time from one address: a peer's hello is looked for several times before its turn to be dropped. */
    private static final int MAX_ACCEPTED = MAX_UNPROVEN / 4;
    /** Between two attempts where the process has no file descriptor left. */
    private static final long SHORTAGE_NANOS = 50_000_000;
    /** How many looks, at least, a client's time is made of: see {@link #watched}. */
    private static final int LOOKS = 10;

    private final OpenResources network;
    private final String name;
    private final byte[] secret;
    private final Duration handshakeDeadline;
    private final List<ServerSocketChannel> servers;
    private final DropLog drops = new DropLog();
    private final Map<ConnectionKey, ExpectedConnection<C>> expected = new HashMap<>();
    /** The latest, oldest first: who comes late with an older one than these finds a key that nobody knows. */
    private final Set<ConnectionKey> usedKeys = new LinkedHashSet<>();
    private final UnprovenClients<C> unproven = new UnprovenClients<>(MAX_UNPROVEN, IncomingHello::knowsSecret);
    private final List<C> early = new ArrayList<>();
    /** Since when no client could be accepted, by {@link System#nanoTime}; as long as {@link #tryAgain} is not 0. */
    private long shortage;
    private long tryAgain;
    /**
     * The clock of the clients' deadlines, nanoseconds. While nobody looks, as nobody expects a connection, or as this
     * process gets no core, it hardly moves on: what a client said meanwhile was not heard.
     */
    private long watched;
    private long lastLook = System.nanoTime();
    private boolean closed;

    /** Takes bound, non-blocking channels over. */
    protected KeyedListener(OpenResources network, String name, byte[] secret, Duration handshakeDeadline,
            List<ServerSocketChannel> servers) {
        this.network = network;
        this.name = name;
        this.secret = secret;
        this.handshakeDeadline = handshakeDeadline;
        this.servers = List.copyOf(servers);
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

    /** {@return keys of clients that are here and that nobody expects, for whoever serves any that knows the secret} */
    public final synchronized Set<ConnectionKey> unexpected() {
        advance();
        Set<ConnectionKey> keys = new LinkedHashSet<>();
        early.forEach(client -> keys.add(client.key()));
        return keys;
    }

    /** Does what can be done for all connections without waiting. */
    final synchronized void advance() {
        checkOpen();
        expected.values().forEach(connection -> connection.dropDeparted(drops::dropped));
        long now = look();
        acceptClients();
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
        for (C client = unproven.removeExcess(); client != null; client = unproven.removeExcess()) {
            drop(client,
                    new Refusal(null, "it was one of more than " + MAX_UNPROVEN + " that had not said who they are"));
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
    }

    /** Moves the clients' clock on, by what the last look counts at the most. */
    private long look() {
        long now = System.nanoTime();
        watched += Math.min(now - lastLook, handshakeDeadline.toNanos() / LOOKS);
        lastLook = now;
        return watched;
    }

    private void acceptClients() {
        if (tryAgain != 0 && System.nanoTime() - tryAgain < 0) {
            return;
        }
        try {
            for (ServerSocketChannel server : servers) {
                for (int accepted = 0; accepted < MAX_ACCEPTED; accepted++) {
                    SocketChannel channel = server.accept();
                    if (channel == null) {
                        break;
                    }
                    try {
                        unproven.add(newClient(channel, watched + handshakeDeadline.toNanos()), source(channel));
                    } catch (IOException gone) {
                        // It left before it was looked at.
                        ConnectionState.closeQuietly(channel);
                    } catch (Refusal e) {
                        ConnectionState.closeQuietly(channel);
                        drops.dropped(channel, e);
                    }
                }
            }
            tryAgain = 0;
        } catch (IOException e) {
            makeRoom(e);
        }
    }

    private static Object source(SocketChannel channel) throws IOException {
        return channel.getRemoteAddress() instanceof InetSocketAddress inet ? inet.getAddress() : "this host";
    }

    /**
     * There may be no descriptor left: a client that has not said who it is gives its own. Without any, others have all
     * of them, and perhaps not for long.
     */
    private void makeRoom(IOException e) {
        long now = System.nanoTime();
        C client = unproven.removeOne();
        if (client != null) {
            tryAgain = 0;
            drop(client, new Refusal(null, "no other connection could be accepted beside it: " + e.getMessage()));
            return;
        }
        shortage = tryAgain == 0 ? now : shortage;
        if (now - shortage > handshakeDeadline.toNanos()) {
            throw new ConnectionException(
                    name + ": cannot accept connections: " + e.getMessage() + "; too many open files? See ulimit -n",
                    e);
        }
        tryAgain = (now + SHORTAGE_NANOS) | 1; // 0 stands for none
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
            early.forEach(IncomingHello::close);
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
