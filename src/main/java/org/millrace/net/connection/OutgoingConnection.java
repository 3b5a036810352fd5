package org.millrace.net.connection;

import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameSender;
import org.millrace.net.Pending;

/** A connection to a listener in the making, until it is returned, given up, or failed. */
public abstract class OutgoingConnection implements Pending<FrameSender> {

    private final OpenResources network;
    private final String name;
    private final Duration limit;
    private final long deadline;
    private @Nullable ConnectionException failure;
    private boolean done;

    /**
     * Begins.
     *
     * @param name  with the peer, for messages
     * @param limit within which the connection must be made
     */
    protected OutgoingConnection(OpenResources network, String name, Duration limit) {
        this.network = network;
        this.name = name;
        this.limit = limit;
        deadline = System.nanoTime() + limit.toNanos();
    }

    /** Does what can be done without waiting; returns the connection, null while it is not made yet. */
    protected abstract @Nullable FrameSender advance();

    /** What the connection waits for, and what may help, for the message when the deadline has passed. */
    protected abstract String waitingFor();

    /** Gives back what was taken for a connection that was not made. */
    protected abstract void release();

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
            FrameSender sender = advance();
            if (sender != null) {
                done = true;
                network.forget(this);
            } else if (nanosLeft() < 0) {
                throw new ConnectionException(name + ": not made in " + limit + ", still waiting for " + waitingFor());
            }
            return sender;
        } catch (ConnectionException e) {
            failure = e;
            end();
            throw e;
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
