package org.millrace.net.connection;

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
    /** What became of it; null while it is expected. */
    private @Nullable String end;

    protected ExpectedConnection(KeyedListener<C> listener, ConnectionKey key) {
        this.listener = listener;
        this.key = key;
    }

    /** Takes a client that came with this key. */
    protected abstract void add(C client) throws Refusal;

    /** Whether all have come that the connection needs. */
    protected abstract boolean isComplete();

    /**
     * Makes room for another client if what came is gone before the connection was made; says so to the listener's log.
     */
    protected abstract void dropDeparted(BiConsumer<Object, Refusal> log);

    /** Makes the connection of all that came; null while that waits for something: it is called again then. */
    protected abstract @Nullable FrameReceiver accept();

    /** Closes all that came. */
    protected abstract void dropAll();

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
            if (!isComplete()) {
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
