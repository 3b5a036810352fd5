package org.millrace.net.connection;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.channels.SocketChannel;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;

/**
 * Accepts clients of a listener, and keeps each client until the client has identified itself. If more clients than the
 * maximum are kept, one client from the address with the most clients is dropped. A client that has proven that it
 * knows the listener's secret is dropped only if all kept clients have proven this. A flood from one address therefore
 * does not keep out clients of other addresses. A flood of clients without the secret does not keep out clients that
 * know the secret. If the process runs out of file descriptors, a client's descriptor is freed. Used by one thread at a
 * time.
 */
public final class Admission<C> {

    /** Owner of the clients: the listener for which this class accepts clients. */
    public interface Host<C> {

        /**
         * Wraps an accepted client before it has sent anything. Returns null if the client cannot be a peer.
         *
         * @throws IOException if the client has already closed the connection
         */
        @Nullable
        C arrived(SocketChannel channel) throws IOException;

        /** Returns whether a client that has not identified itself yet has proven that it knows the secret. */
        boolean knowsSecret(C client);

        /** Closes a client that was dropped, and logs the reason. */
        void drop(C client, String why);
    }

    /** Accepts the next connection from the operating system. Returns null if none is waiting. */
    public interface Accept {
        @Nullable
        SocketChannel next() throws IOException;
    }

    private static final Logger LOG = LogManager.getLogger(Admission.class);
    /**
     * Maximum number of connections accepted at a time. The clients' messages are read after each batch. A new client
     * is usually dropped only after several further batches, so its messages are read several times before it is
     * dropped.
     */
    public static final int MAX_ACCEPTED = 64;
    /** Pause in nanoseconds before the next attempt, if no connection can be accepted and no client can be dropped. */
    private static final long PAUSE_NANOS = 100_000_000;

    private final int most;
    private final Host<C> host;
    /** Clients with their addresses, oldest first. */
    private final Map<C, Object> sources = new LinkedHashMap<>();
    private final Map<Object, Integer> bySource = new HashMap<>();
    /**
     * Reserve: an unused descriptor, which is closed when the process has no free descriptor to accept a connection;
     * null while the reserve is closed.
     */
    private @Nullable SocketChannel reserve;
    /** Reason why no connection can be accepted; null while connections can be accepted. */
    private @Nullable IOException shortage;
    /** First and latest time at which no connection could be accepted, by {@link System#nanoTime}. */
    private long shortageBegan;
    private long shortageSeen;

    /** @param most maximum number of clients */
    public Admission(int most, Host<C> host) {
        this.most = most;
        this.host = host;
    }

    /**
     * Accepts some of the waiting clients. Returns true if more clients may be waiting, and false if no client can be
     * accepted now.
     */
    public boolean accept(Accept from) {
        if (pauseNanos() > 0) {
            return false;
        }
        try {
            int accepted = 0;
            for (SocketChannel channel; accepted < MAX_ACCEPTED && (channel = from.next()) != null; accepted++) {
                receive(channel);
            }
            shortage = null;
            if (reserve == null) {
                reserve = SocketChannel.open();
            }
            return accepted == MAX_ACCEPTED;
        } catch (IOException e) {
            LOG.debug("no connection can be accepted", e);
            makeRoom(e);
            return false;
        }
    }

    private void receive(SocketChannel channel) {
        try {
            Object source =
                    channel.getRemoteAddress() instanceof InetSocketAddress inet ? inet.getAddress() : "this host";
            C client = host.arrived(channel);
            if (client == null) {
                ConnectionState.closeQuietly(channel);
            } else {
                add(client, source);
            }
        } catch (IOException e) {
            LOG.debug("a connection ended before it was accepted", e);
            ConnectionState.closeQuietly(channel);
        }
        while (sources.size() > most) {
            dropOne("it was one of more than " + most + " that had not identified themselves");
        }
    }

    /** Frees descriptors after an accept has failed: the unused descriptor, and the descriptor of one client. */
    private void makeRoom(IOException e) {
        closeReserve();
        shortageSeen = System.nanoTime();
        shortageBegan = shortage == null ? shortageSeen : shortageBegan;
        shortage = dropOne("no other connection could be accepted beside it: " + e.getMessage()) ? null : e;
    }

    /**
     * Returns the reason why no connection could be accepted for longer than the given time. Returns null if
     * connections can be accepted, or if a client could be dropped.
     */
    @Nullable
    IOException shortageOf(long nanos) {
        return shortageSeen - shortageBegan > nanos ? shortage : null;
    }

    /** Returns the remaining pause before the next accept; 0 if connections are accepted. */
    public long pauseNanos() {
        return shortage == null ? 0 : Math.max(0, shortageSeen + PAUSE_NANOS - System.nanoTime());
    }

    void add(C client, Object source) {
        sources.put(client, source);
        bySource.merge(source, 1, Integer::sum);
    }

    /** Removes a client without closing it. Does nothing for an unknown client. */
    public void remove(C client) {
        Object source = sources.remove(client);
        if (source != null) {
            bySource.computeIfPresent(source, (same, count) -> count == 1 ? null : count - 1);
        }
    }

    /** Returns a list of all kept clients, oldest first. The list is a copy. */
    public List<C> all() {
        return List.copyOf(sources.keySet());
    }

    public boolean isEmpty() {
        return sources.isEmpty();
    }

    /** Drops the client that the rules in the class comment select. Returns false if there is no client. */
    private boolean dropOne(String why) {
        int crowd = bySource.values().stream().mapToInt(Integer::intValue).max().orElse(0);
        C chosen = null;
        boolean spared = true;
        for (Map.Entry<C, Object> each : sources.entrySet()) {
            boolean knows = host.knowsSecret(each.getKey());
            if (chosen == null || spared && !knows) {
                chosen = each.getKey();
                spared = knows;
            }
            if (!knows && bySource.get(each.getValue()) == crowd) {
                chosen = each.getKey();
                break;
            }
        }
        if (chosen == null) {
            return false;
        }
        remove(chosen);
        host.drop(chosen, why);
        return true;
    }

    /** Stops accepting connections. The caller closes the remaining clients. */
    public void closeReserve() {
        ConnectionState.closeQuietly(reserve);
        reserve = null;
    }
}
