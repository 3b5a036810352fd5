package org.millrace.net.connection;

import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;
import org.millrace.net.LastWordsException;
import org.millrace.net.PeerClosedException;

/**
 * The end of a connection, and the first thing that went wrong with it: from then on every call says so. What carries
 * the bytes is the subclass's.
 */
public abstract class ConnectionState {

    private static final Logger LOG = LogManager.getLogger(ConnectionState.class);

    private final OpenResources network;
    private final String name;
    private final String peer;
    private final AtomicBoolean closed = new AtomicBoolean();
    private volatile @Nullable ConnectionException failure;
    private volatile @Nullable String blamed;

    /**
     * An open connection.
     *
     * @param name with its peer in it
     * @param peer the process at the other end
     */
    protected ConnectionState(OpenResources network, String name, String peer) {
        this.network = network;
        this.name = name;
        this.peer = peer;
    }

    /** The process at the other end, for messages. */
    public final String peer() {
        return peer;
    }

    public final OpenResources network() {
        return network;
    }

    public final void checkOpen() {
        ConnectionException first = failure;
        if (first != null) {
            throw first;
        }
    }

    /** Checks that a receiver's payload may be given a destination. */
    public final void checkAccept(boolean headerShown) {
        checkOpen();
        if (!headerShown) {
            throw new IllegalStateException(
                    name + ": no header is waiting for a destination; accept follows a poll that returned one");
        }
    }

    /** What went wrong first; null while nothing has. */
    protected final @Nullable ConnectionException failure() {
        return failure;
    }

    /** The connection will be closed because another process was lost. */
    public final void blame(String lostPeer) {
        blamed = lostPeer;
    }

    /** The process that the connection will be closed for; null if there is none. */
    public final @Nullable String blamed() {
        return blamed;
    }

    /** What to throw when the peer has shut the connection down. */
    public final ConnectionException closedByPeer(String progress) {
        return closedByPeer(progress, null);
    }

    /**
     * What to throw when the peer has shut the connection down.
     *
     * @param lostPeer whom it has lost itself, and left for; null if it did not say so
     */
    public final ConnectionException closedByPeer(String progress, @Nullable String lostPeer) {
        return fail(lostPeer == null ? new PeerClosedException(name + ": closed by the peer " + progress)
                : new LastWordsException(
                        name + ": closed by the peer, which has itself lost " + lostPeer + ", " + progress, lostPeer));
    }

    /**
     * What to throw when the peer is gone without a shutdown message.
     *
     * @param what     how that was noticed
     * @param progress how far this end has come
     * @param hint     what else may be the matter, and where to look
     */
    protected final ConnectionException lost(String what, String progress, String hint, @Nullable Throwable cause) {
        return fail(new ConnectionException(name + ": connection lost (" + what + ") " + progress + hint, cause));
    }

    /** What to throw when the connection was closed here, by another thread. */
    protected final ConnectionException closedHere() {
        return fail(new ConnectionException(name + ": was closed on this side"));
    }

    /** Keeps the first failure, and returns it. */
    protected final synchronized ConnectionException fail(ConnectionException what) {
        ConnectionException first = failure;
        if (first == null) {
            failure = what;
            return what;
        }
        return first;
    }

    /**
     * Closes the connection, once.
     *
     * @param last what to do first, if the connection has not failed
     */
    public final void close(Runnable last) {
        if (!closed.compareAndSet(false, true)) {
            return;
        }
        try {
            if (failure == null) {
                last.run();
            }
        } finally {
            closedHere();
            try {
                release();
            } finally {
                network.forget(this);
            }
        }
    }

    /** Gives back what carries the bytes. Called once. */
    protected abstract void release();

    /** Closes something; a failure to do so is logged, as the system has given it back all the same. */
    public static void closeQuietly(@Nullable AutoCloseable resource) {
        try {
            if (resource != null) {
                resource.close();
            }
        } catch (Exception e) {
            LOG.debug("closing {} failed; the system has given it back all the same", resource, e);
        }
    }

    @Override
    public final String toString() {
        return name;
    }

    /** A sender or a receiver, as far as both are named, and blame others, by the state of their connection. */
    public static abstract class ConnectionEnd {

        private final ConnectionState state;

        protected ConnectionEnd(ConnectionState state) {
            this.state = state;
        }

        public final String peer() {
            return state.peer();
        }

        public final void blame(String lostPeer) {
            state.blame(lostPeer);
        }

        @Override
        public final String toString() {
            return state.toString();
        }
    }
}
