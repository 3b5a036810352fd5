package org.millrace.net.connection;

import java.time.Duration;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameSender;
import org.millrace.net.Pending;
import org.millrace.net.connection.HandshakeReply.Unanswered;

/**
 * A connection to a listener in the making, until it is returned, given up, or failed. A listener that has many
 * unauthenticated clients, or had no core for a while, may drop a client of its own before it has heard who that is:
 * the client comes again, a few times.
 */
public abstract class OutgoingConnection implements Pending<FrameSender> {

    private static final Logger LOG = LogManager.getLogger(OutgoingConnection.class);
    /** After so many it is said: it may be that the listener drops whom it does not understand. */
    private static final int ATTEMPTS = 7;
    private static final long FIRST_PAUSE_NANOS = 10_000_000;

    private final OpenResources network;
    private final String name;
    private final Duration limit;
    private final long deadline;
    private final Duration patience;
    private int attempts = 1;
    /** By {@link System#nanoTime}: when the next attempt begins; 0 while one is being made. */
    private long pause;
    private @Nullable Unanswered unanswered;
    private long unansweredSince;
    private @Nullable ConnectionException failure;
    private boolean done;

    /**
     * Begins.
     *
     * @param name  with the peer, for messages
     * @param limit within which the connection must be made
     */
    protected OutgoingConnection(OpenResources network, String name, Duration limit) {
        this(network, name, limit, Duration.ZERO);
    }

    /**
     * Begins.
     *
     * @param name     with the peer, for messages
     * @param limit    within which the connection must be made
     * @param patience for how long it begins anew when a listener does not answer; less than a second counts as that
     */
    protected OutgoingConnection(OpenResources network, String name, Duration limit, Duration patience) {
        this.network = network;
        this.name = name;
        this.limit = limit;
        this.patience = patience;
        deadline = System.nanoTime() + limit.toNanos();
    }

    /**
     * Does what can be done without waiting; returns the connection, null while it is not made yet. Begins anew after
     * {@link #release}.
     */
    protected abstract @Nullable FrameSender advance();

    /** What the connection waits for, and what may help, for the message when the deadline has passed. */
    protected abstract String waitingFor();

    /** Gives back what was taken for a connection that was not made. */
    protected abstract void release();

    /** Whether it begins anew when a listener does not answer. */
    protected final boolean mayTryAgain() {
        return nanosLeft() > 0 && (attempts < ATTEMPTS || System.nanoTime() - unansweredSince < patience.toNanos());
    }

    protected final OpenResources network() {
        return network;
    }

    /** Time left until the deadline, nanoseconds. */
    protected final long nanosLeft() {
        return deadline - System.nanoTime();
    }

    @Override
    public final synchronized @Nullable FrameSender poll() {
        if (failure != null) {
            throw failure;
        }
        if (done) {
            throw new IllegalStateException(name + ": was returned or given up before");
        }
        try {
            FrameSender sender = attempt();
            if (sender != null) {
                done = true;
                network.forget(this);
            } else if (nanosLeft() < 0) {
                throw new ConnectionException(name + ": not made in " + limit + ", still waiting for "
                        + (pause == 0 ? waitingFor() : "its turn to try again")
                        + (unanswered == null ? "" : "; before that: " + unanswered.getMessage()));
            }
            return sender;
        } catch (ConnectionException e) {
            failure = e;
            end();
            throw e;
        }
    }

    private @Nullable FrameSender attempt() {
        if (pause != 0) {
            if (System.nanoTime() - pause < 0) {
                return null;
            }
            pause = 0;
        }
        try {
            return advance();
        } catch (Unanswered e) {
            if (!mayTryAgain()) {
                throw e;
            }
            LOG.debug("{}: attempt {} was not answered", name, attempts, e);
            if (attempts == ATTEMPTS) {
                LOG.warn("{}: {} This is tried again for {}: the network may be cut", name, e.getMessage(), patience);
            }
            unansweredSince = unanswered == null ? System.nanoTime() : unansweredSince;
            unanswered = e;
            release();
            pause = (System.nanoTime() + (FIRST_PAUSE_NANOS << Math.min(attempts, ATTEMPTS) - 1)) | 1; // 0: none
            attempts++;
            return null;
        }
    }

    private void end() {
        release();
        network.forget(this);
    }

    @Override
    public final synchronized void close() {
        if (!done && failure == null) {
            done = true;
            end();
        }
    }

    @Override
    public final String toString() {
        return name;
    }
}
