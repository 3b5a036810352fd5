package org.millrace.engine;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.abi.Protocol;
import org.millrace.device.DeviceEndpoint;
import org.millrace.proxy.spi.ProxyOp;

/**
 * One direction of one channel to one peer ({@code ncclConnector}). Operations may use a connector before it is
 * connected. Until then, kernels wait on the device, and announced operations wait in a queue of the connector.
 *
 * @param <P> type of the device's end
 */
final class Connector<P> {

    /** State of the connection. Only the service's thread advances it. */
    enum State {
        /** An operation needs the connection. The service's thread has not seen the request yet. */
        ASKED,
        /** This end has its resources and has sent its set-up message to the peer. It waits for the peer's message. */
        SETTING_UP,
        /** Both ends have exchanged their set-up messages, and are connecting. */
        CONNECTING,
        /** The device has its port, and the proxies have received the announced operations. */
        CONNECTED,
        /** The connection cannot be made, because an end reported a failure or a deadline has passed. */
        FAILED,
        /** The communicator was closed before the connection was made. */
        STOPPED
    }

    private final DeviceEndpoint<P> endpoint;
    private final Supplier<PendingConnection> setup;
    private final Function<TransportConnection, P> toPort;
    private final Deadlines deadlines;
    /** Time at which both ends had exchanged their set-up messages. Service's thread only. */
    private long metNanos;
    private final Queue<ProxyOp> early = new ArrayDeque<>();
    private volatile State state = State.ASKED;
    /** Connection attempt in progress. Service's thread only. */
    private @Nullable PendingConnection pending;
    private @Nullable TransportConnection connection;
    /** Number of sends or receives issued so far. Only the thread that issues operations accesses this field. */
    private long transfers;
    /** Newest announced operation; null if none. Written by the thread that issues operations. */
    private @Nullable ProxyOp last;

    /** @param setup function that sets up this end and sends its set-up message to the peer */
    Connector(DeviceEndpoint<P> endpoint, Deadlines deadlines, Supplier<PendingConnection> setup,
            Function<TransportConnection, P> toPort) {
        this.deadlines = deadlines;
        this.endpoint = endpoint;
        this.setup = setup;
        this.toPort = toPort;
    }

    /**
     * Returns the ordinal of the next send or receive of this connector, from 0. The peer's connector counts the other
     * halves of these transfers in the same way.
     */
    long nextTransfer() {
        return transfers++;
    }

    /** Returns whether the newest operation announced to this connector has the given number. */
    boolean hasPart(long opCount) {
        return last != null && last.opCount() == opCount;
    }

    /** Returns the newest announced operation; null if none. */
    @Nullable
    ProxyOp last() {
        return last;
    }

    /** Returns the name of the transport that moves the data; null while this connector is not connected. */
    synchronized @Nullable String transport() {
        return connection == null ? null : connection.transport();
    }

    /**
     * Returns the mode of the newest announced operation: whether its data is in slots, in a shared pool or in the
     * user's memory.
     */
    synchronized String mode() {
        if (last.user() != null) {
            return "PTR";
        }
        return connection != null && connection.info().shared() != null && last.protocol() == Protocol.SIMPLE ? "OFFSET"
                : "NORMAL";
    }

    /**
     * Returns whether the two devices share memory with no proxy between them. If so, one device may read memory of the
     * other.
     */
    synchronized boolean isDirect() {
        return connection != null && connection.info().direct() != null;
    }

    synchronized void announce(ProxyOp op) {
        last = op;
        if (connection == null) {
            early.add(op);
        } else {
            connection.announce(op);
        }
    }

    State state() {
        return state;
    }

    /**
     * Advances the connection attempt without blocking. Returns the connection if this call completes it, otherwise
     * null. The completing call also passes to the connection all operations that were announced to this connector
     * before the call. After that, the call passes the port to the device, which can then use the connection.
     *
     * @throws MillraceException if the connection cannot be made
     */
    @Nullable
    TransportConnection progress() {
        try {
            if (state == State.ASKED) {
                pending = setup.get();
                state = State.SETTING_UP;
            }
            if (state == State.SETTING_UP && pending.peerIsSetUp()) {
                state = State.CONNECTING;
                metNanos = System.nanoTime();
            }
            return state == State.CONNECTING ? connect() : null;
        } catch (RuntimeException | Error thrown) {
            state = State.FAILED;
            throw thrown;
        }
    }

    private @Nullable TransportConnection connect() {
        TransportConnection made = pending.poll();
        if (made == null) {
            return null;
        }
        P port = toPort.apply(made);
        synchronized (this) {
            early.forEach(made::announce);
            early.clear();
            connection = made;
        }
        state = State.CONNECTED;
        endpoint.connect(port);
        return made;
    }

    boolean isOverdue() {
        boolean met = state == State.CONNECTING;
        Duration allowed = met ? deadlines.connect : deadlines.arrival;
        return System.nanoTime() - (met ? metNanos : deadlines.begun) > allowed.toNanos();
    }

    /** Returns the time limit that has passed, with the name of the limit's setting, for messages. */
    String overdueSetting() {
        boolean late = state != State.CONNECTING && deadlines.arrival != deadlines.connect;
        return late ? deadlines.arrival.toMillis() + " ms (MILLRACE_LATE_DEADLINE)"
                : deadlines.connect.toMillis() + " ms (MILLRACE_CONNECT_DEADLINE)";
    }

    int peer() {
        return deadlines.peer;
    }

    /**
     * Peer and time limits of a connection.
     *
     * @param begun   time of the request for the connection
     * @param arrival maximum time, counted from {@code begun}, until the peer also begins the connection
     * @param connect maximum time, counted from the moment when the peer has begun, until both ends are connected
     */
    record Deadlines(int peer, long begun, Duration arrival, Duration connect) {
    }

    /**
     * Abandons the connection attempt. May be called twice. If the connector has already failed, its state remains
     * {@link State#FAILED}.
     */
    void giveUp(State why) {
        if (state != State.FAILED) {
            state = why;
        }
        if (pending != null) {
            pending.close();
        }
    }

    @Override
    public String toString() {
        return endpoint.name();
    }
}
