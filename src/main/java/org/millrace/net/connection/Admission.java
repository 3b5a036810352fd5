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
 * Accepts clients, and keeps those of whom it is not known yet who they are. Where there are too many, one goes of the
 * address from which most came, and not one that has shown already that it knows the listener's secret: so neither a
 * flood from one address keeps out who comes from another, nor one of clients without the secret who has it. Where the
 * process has no file descriptor left, one gives its own. Used by one thread at a time.
 */
public final class Admission<C> {

    /** Whose clients these are. */
    public interface Host<C> {

        /**
         * Looks at a client before it has said anything; null if it cannot be a peer.
         *
         * @throws IOException if it has left already
         */
        @Nullable
        C arrived(SocketChannel channel) throws IOException;

        /** Whether a client has shown that, though not yet who it is. */
        boolean knowsSecret(C client);

        /** Closes a client, which is forgotten, and tells why. */
        void drop(C client, String why);
    }

    /** Takes the next connection from the system; null if there is none. */
    public interface Accept {
        @Nullable
        SocketChannel next() throws IOException;
    }

    private static final Logger LOG = LogManager.getLogger(Admission.class);
    /** Taken at a time: what those here say is looked for in between, several times before their turn to be dropped. */
    public static final int MAX_ACCEPTED = 64;
    /** Until the next attempt, where no connection can be accepted and no client is here to be dropped. */
    private static final long PAUSE_NANOS = 100_000_000;

    private final int most;
    private final Host<C> host;
    /** With the address that each came from, oldest first. */
    private final Map<C, Object> sources = new LinkedHashMap<>();
    private final Map<Object, Integer> bySource = new HashMap<>();
    /** A descriptor that is given up for a connection when there is no other; null while it is. */
    private @Nullable SocketChannel reserve;
    /** Why no connection can be accepted; null while they can. */
    private @Nullable IOException shortage;
    /** When that was first found and last, by {@link System#nanoTime}. */
    private long shortageBegan;
    private long shortageSeen;

    /** @param most clients that are kept */
    public Admission(int most, Host<C> host) {
        this.most = most;
        this.host = host;
    }

    /** Takes some of the clients that wait; false if no other can be accepted now. */
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
            dropOne("it was one of more than " + most + " that had not introduced themselves");
        }
    }

    /** A connection waits and cannot be accepted: there is the reserve's descriptor, and that of a client. */
    private void makeRoom(IOException e) {
        closeReserve();
        shortageSeen = System.nanoTime();
        shortageBegan = shortage == null ? shortageSeen : shortageBegan;
        shortage = dropOne("no other connection could be accepted beside it: " + e.getMessage()) ? null : e;
    }

    /** Why no connection could be accepted for that long; null where they can, or a client could be dropped for one. */
    @Nullable
    IOException shortageOf(long nanos) {
        return shortageSeen - shortageBegan > nanos ? shortage : null;
    }

    /** How long no connection is looked for; 0 if they are. */
    public long pauseNanos() {
        return shortage == null ? 0 : Math.max(0, shortageSeen + PAUSE_NANOS - System.nanoTime());
    }

    void add(C client, Object source) {
        sources.put(client, source);
        bySource.merge(source, 1, Integer::sum);
    }

    /** Does nothing if it is not here. */
    public void remove(C client) {
        Object source = sources.remove(client);
        if (source != null) {
            bySource.computeIfPresent(source, (same, count) -> count == 1 ? null : count - 1);
        }
    }

    /** Oldest first, as they are now. */
    public List<C> all() {
        return List.copyOf(sources.keySet());
    }

    public boolean isEmpty() {
        return sources.isEmpty();
    }

    /** Drops the one to go first; false if there is none. */
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

    /** No more are accepted; those that are here are the caller's to close. */
    public void closeReserve() {
        ConnectionState.closeQuietly(reserve);
        reserve = null;
    }
}
