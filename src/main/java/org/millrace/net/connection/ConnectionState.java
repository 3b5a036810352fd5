package org.millrace.net.connection;

import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;
import org.millrace.net.LostPeerException;
import org.millrace.net.PeerClosedException;

/**
 * State of one end of a connection: open, closed, or failed. The first failure is kept, and every later call throws it.
 * The subclass owns the resources that carry the bytes.
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
     * @param name name of the connection, including the peer's name
     * @param peer the peer process
     */
    protected ConnectionState(OpenResources network, String name, String peer) {
        this.network = network;
        this.name = name;
        this.peer = peer;
    }

    /** Returns the peer process, for messages. */
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

    /**
     * Throws an exception if the connection has failed. Also throws an exception if {@code poll} has not returned a
     * header since the last {@code accept}.
     */
    public final void checkAccept(boolean headerShown) {
        checkOpen();
        if (!headerShown) {
            throw new IllegalStateException(
                    name + ": no header is waiting for a destination; accept follows a poll that returned one");
        }
    }

    /** Returns the first failure; null without a failure. */
    protected final @Nullable ConnectionException failure() {
        return failure;
    }

    /** Records that the connection will be closed because another process was lost. */
    public final void blame(String lostPeer) {
        blamed = lostPeer;
    }

    /** Returns the lost process that is the reason for closing the connection; null without such a loss. */
    public final @Nullable String blamed() {
        return blamed;
    }

    /** Returns the exception for a peer that has shut the connection down. */
    public final ConnectionException closedByPeer(String progress) {
        return closedByPeer(progress, null);
    }

    /**
     * Returns the exception for a peer that has shut the connection down.
     *
     * @param lostPeer process that the peer has lost and names as the reason for its close; null if the peer named no
     *                 process
     */
    public final ConnectionException closedByPeer(String progress, @Nullable String lostPeer) {
        return fail(lostPeer == null ? new PeerClosedException(name + ": closed by the peer " + progress)
                : new LostPeerException(
                        name + ": closed by the peer, which has itself lost " + lostPeer + ", " + progress, lostPeer));
    }

    /**
     * Returns the exception for a peer that is gone without a shutdown message.
     *
     * @param what     the event that revealed the loss
     * @param progress progress of this end
     * @param hint     another possible cause, and the place where the user finds information about it
     */
    protected final ConnectionException lost(String what, String progress, String hint, @Nullable Throwable cause) {
        return fail(new ConnectionException(name + ": connection lost (" + what + ") " + progress + hint, cause));
    }

    /** Returns the exception for a connection that another thread of this process closed. */
    protected final ConnectionException closedHere() {
        return fail(new ConnectionException(name + ": was closed on this side"));
    }

    /** Stores a failure, unless an earlier failure is stored. Returns the first failure. */
    protected final synchronized ConnectionException fail(ConnectionException what) {
        ConnectionException first = failure;
        if (first == null) {
            failure = what;
            return what;
        }
        return first;
    }

    /**
     * Closes the connection. Only the first call has an effect.
     *
     * @param last last action before the close, omitted if the connection has failed
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

    /** Releases the resources that carry the bytes. Called once. */
    protected abstract void release();

    /** Closes a resource. A failure is only logged, because the operating system has released the resource anyway. */
    public static void closeQuietly(@Nullable AutoCloseable resource) {
        try {
            if (resource != null) {
                resource.close();
            }
        } catch (Exception e) {
            LOG.debug("closing {} failed; the system has released it all the same", resource, e);
        }
    }

    @Override
    public final String toString() {
        return name;
    }

    /** Common part of senders and receivers, with the peer and the text of the connection's state. */
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
