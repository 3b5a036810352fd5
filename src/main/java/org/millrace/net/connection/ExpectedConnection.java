package org.millrace.net.connection;

import java.util.ArrayList;
import java.util.List;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.Pending;
import org.millrace.net.connection.HandshakeReply.Refusal;

/** A connection that a listener expects, with the clients that have arrived for it. Guarded by the listener's lock. */
public abstract class ExpectedConnection<C extends IncomingHello> implements Pending<FrameReceiver> {

    private final KeyedListener<C> listener;
    private final ConnectionKey key;
    /** Clients of one peer that have arrived. None of them has received a reply. */
    private final List<C> came = new ArrayList<>();
    /** Reason why the connection is no longer expected; null while the connection is expected. */
    private @Nullable String end;

    protected ExpectedConnection(KeyedListener<C> listener, ConnectionKey key) {
        this.listener = listener;
        this.key = key;
    }

    /** Adds a client that arrived with this connection's key. */
    final void add(C client) throws Refusal {
        check(client);
        client.checkWaits();
        came.add(client);
    }

    /** Throws a {@link Refusal} if a client does not belong to the same connection as the earlier clients. */
    protected void check(C client) throws Refusal {
        if (isComplete()) {
            throw new Refusal(HandshakeReply.KEY_TAKEN, "another client is connecting with key " + key);
        }
    }

    /** Returns whether all clients that the connection needs have arrived. */
    protected boolean isComplete() {
        return !came.isEmpty();
    }

    /**
     * Returns whether the listener has already replied to the client, but has not received the client's confirmation
     * yet. Before its confirmation, the client may connect again.
     */
    protected boolean isAnswered() {
        return false;
    }

    protected final List<C> came() {
        return came;
    }

    /**
     * Drops all clients of this connection if one of them has closed its stream before the connection was established.
     * The peer can then connect again.
     */
    final void dropDeparted(BiConsumer<Object, Refusal> log) {
        try {
            for (C client : came) {
                client.checkWaits();
            }
        } catch (Refusal e) {
            log.accept(came.getFirst(), e);
            came.forEach(IncomingHello::close);
            came.clear();
        }
    }

    /** Creates the connection from the clients. Returns null if the caller must repeat the call later. */
    protected abstract @Nullable FrameReceiver accept();

    /** Refuses and closes all clients. */
    protected void dropAll() {
        came.forEach(client -> client.refuse(new Refusal(HandshakeReply.KEY_TAKEN, "the connection was given up")));
        came.clear();
    }

    protected final ConnectionKey key() {
        return key;
    }

    @Override
    public final @Nullable FrameReceiver poll() {
        synchronized (listener) {
            if (end != null) {
                throw new ConnectionException(this + ": " + end);
            }
            if (!isComplete()) {
                listener.advance();
            }
            if (!isComplete() && !isAnswered()) {
                return null;
            }
            boolean goesOn = false;
            try {
                FrameReceiver made = accept();
                goesOn = made == null;
                return made;
            } finally {
                if (!goesOn) {
                    end = "was returned before";
                    listener.forget(key);
                }
            }
        }
    }

    @Override
    public final void close() {
        end("was given up");
    }

    final void end(String how) {
        synchronized (listener) {
            if (end == null) {
                end = how;
                listener.forget(key);
                dropAll();
            }
        }
    }

    @Override
    public final String toString() {
        return "connection " + key + " expected by " + listener;
    }
}
