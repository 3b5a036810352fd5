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

/** A connection that a listener expects, and what has come for it. Guarded by its listener. */
public abstract class ExpectedConnection<C extends IncomingHello> implements Pending<FrameReceiver> {

    private final KeyedListener<C> listener;
    private final ConnectionKey key;
    /** All of one peer, and none that was answered. */
    private final List<C> came = new ArrayList<>();
    /** What became of it; null while it is expected. */
    private @Nullable String end;

    protected ExpectedConnection(KeyedListener<C> listener, ConnectionKey key) {
        this.listener = listener;
        this.key = key;
    }

    /** Takes a client that came with this key. */
    final void add(C client) throws Refusal {
        check(client);
        client.checkWaits();
        came.add(client);
    }

    /** Refuses a client that is not of the same connection as those that came. */
    protected void check(C client) throws Refusal {
        if (isComplete()) {
            throw new Refusal(HandshakeReply.KEY_TAKEN, "another client is connecting with key " + key);
        }
    }

    /** Whether all have come that the connection needs. */
    protected boolean isComplete() {
        return !came.isEmpty();
    }

    /** Whether the connection is made but for a word of the client's, which may still begin anew. */
    protected boolean isAnswered() {
        return false;
    }

    protected final List<C> came() {
        return came;
    }

    /** Makes room for another client if one that came is gone before the connection was made. */
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

    /** Makes the connection of all that came; null while that waits for something: it is called again then. */
    protected abstract @Nullable FrameReceiver accept();

    /** Closes all that came. */
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
