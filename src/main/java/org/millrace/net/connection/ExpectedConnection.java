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

/** A connection that a listener expects, with the clients that have arrived for it. Guarded by its listener. */
public abstract class ExpectedConnection<C extends IncomingHello> implements Pending<FrameReceiver> {

    private final KeyedListener<C> listener;
    private final ConnectionKey key;
    /** Clients of one peer, none of them answered. */
    private final List<C> came = new ArrayList<>();
    /** Outcome of the connection; null while it is expected. */
    private @Nullable String end;

    protected ExpectedConnection(KeyedListener<C> listener, ConnectionKey key) {
        this.listener = listener;
        this.key = key;
    }

    /** Adds a client that arrived with this key. */
    final void add(C client) throws Refusal {
        check(client);
        client.checkWaits();
        came.add(client);
    }

    /** Refuses a client that belongs to another connection than the earlier clients. */
    protected void check(C client) throws Refusal {
        if (isComplete()) {
            throw new Refusal(HandshakeReply.KEY_TAKEN, "another client is connecting with key " + key);
        }
    }

    /** Returns whether all clients that the connection needs have arrived. */
    protected boolean isComplete() {
        return !came.isEmpty();
    }

    /** Returns whether the connection waits only for the client's confirmation. The client may still start again. */
    protected boolean isAnswered() {
        return false;
    }

    protected final List<C> came() {
        return came;
    }

    /** Drops a client that left before the connection was established, and so makes room for another. */
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

    /** Creates the connection from the clients. Returns null while it has to wait; it is called again then. */
    protected abstract @Nullable FrameReceiver accept();

    /** Closes all clients. */
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
