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
 * An attempt to connect to a listener. It lasts until the connection is returned, is given up, or fails. A listener may
 * drop a client before the listener has identified the client as a peer. The reason is that the listener has many
 * unauthenticated clients, or that its thread had no core for a while. The client then connects again, a few times.
 */
public abstract class OutgoingConnection implements Pending<FrameSender> {

    private static final Logger LOG = LogManager.getLogger(OutgoingConnection.class);
    /**
     * Number of attempts after which the failure is reported. The number is limited, because a listener drops all
     * attempts of a client whose hello it does not understand.
     */
    private static final int ATTEMPTS = 7;
    private static final long FIRST_PAUSE_NANOS = 10_000_000;

    private final OpenResources network;
    private final String name;
    private final Duration limit;
    private final long deadline;
    private final Duration patience;
    private int attempts = 1;
    /** Time of the next attempt, by {@link System#nanoTime}; 0 while an attempt is in progress. */
    private long pause;
    private @Nullable Unanswered unanswered;
    private long unansweredSince;
    private @Nullable ConnectionException failure;
    private boolean done;

    /**
     * @param name  name of the connection and of its peer, for messages
     * @param limit time limit for the connection
     */
    protected OutgoingConnection(OpenResources network, String name, Duration limit) {
        this(network, name, limit, Duration.ZERO);
    }

    /**
     * @param name     name of the connection and of its peer, for messages
     * @param limit    time limit for the connection
     * @param patience time during which new attempts are made if a listener does not answer. Even if this time is 0,
     *                 {@value #ATTEMPTS} attempts are made, which takes about a second
     */
    protected OutgoingConnection(OpenResources network, String name, Duration limit, Duration patience) {
        this.network = network;
        this.name = name;
        this.limit = limit;
        this.patience = patience;
        deadline = System.nanoTime() + limit.toNanos();
    }

    /**
     * Advances the connection attempt without blocking. Returns the sender, or null while the attempt is in progress.
     * After {@link #release}, the next call begins a new attempt.
     */
    protected abstract @Nullable FrameSender advance();

    /** Returns the event that the attempt waits for, and a remedy, for the message after the deadline. */
    protected abstract String waitingFor();

    /** Releases the resources of an attempt that has not established a connection. */
    protected abstract void release();

    /** Returns whether a new attempt will follow if the listener does not answer this attempt. */
    protected final boolean mayTryAgain() {
        return nanosLeft() > 0 && (attempts < ATTEMPTS || System.nanoTime() - unansweredSince < patience.toNanos());
    }

    protected final OpenResources network() {
        return network;
    }

    /** Returns the time until the deadline, in nanoseconds. */
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
                        + (pause == 0 ? waitingFor() : "the next attempt")
                        + (unanswered == null ? "" : "; before that: " + unanswered.getMessage()));
            }
            return sender;
        } catch (ConnectionException e) {
            failure = e;
            end();
            throw e;
        }
    }

    /** {@inheritDoc} The text names the event that the connection waits for, but no remedy. */
    @Override
    public final synchronized String describe() {
        return name + " waits for " + (pause == 0 || unanswered == null ? waitingFor().split("; ", 2)[0]
                : "its next attempt: " + unanswered.getMessage());
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
            // The lowest bit is set, because the value 0 would mean that an attempt is in progress.
            pause = (System.nanoTime() + (FIRST_PAUSE_NANOS << Math.min(attempts, ATTEMPTS) - 1)) | 1;
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
