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
import org.millrace.proxy.ProxyOp;

/**
 * One direction of one channel to one peer ({@code ncclConnector}), connected or on the way to be: operations can be
 * issued for it at once, and wait on the device and in a queue here.
 *
 * @param <P> the device's end of it
 */
final class Connector<P> {

    /** How far the connection has come. The service's thread alone moves it on. */
    enum State {
        /** An operation needs it; the service's thread has not seen it yet. */
        ASKED,
        /** This end has what it needs, and has told the peer. The peer's answer is waited for. */
        SETTING_UP,
        /** Both ends have told each other what they set up, and connect. */
        CONNECTING,
        /** The device has its port, and the proxies have what was announced. */
        CONNECTED,
        /** It cannot be made: an end says why, or it was not made in time. */
        FAILED,
        /** The communicator ended before it was made. */
        STOPPED
    }

    private final DeviceEndpoint<P> endpoint;
    private final Supplier<PendingConnection> setup;
    private final Function<TransportConnection, P> toPort;
    private final Deadlines deadlines;
    /** When both ends had told each other what they set up. The service's thread alone. */
    private long metNanos;
    private final Queue<ProxyOp> early = new ArrayDeque<>();
    private volatile State state = State.ASKED;
    /** What is on the way. The service's thread alone. */
    private @Nullable PendingConnection pending;
    private @Nullable TransportConnection connection;
    /** Sends or receives issued so far. Guarded by the thread that issues. */
    private long transfers;
    /** The last operation that was announced. Guarded by the thread that issues. */
    private @Nullable ProxyOp last;

    /**
     * @param setup sets this end up and tells the other
     */
    Connector(DeviceEndpoint<P> endpoint, Deadlines deadlines, Supplier<PendingConnection> setup,
            Function<TransportConnection, P> toPort) {
        this.deadlines = deadlines;
        this.endpoint = endpoint;
        this.setup = setup;
        this.toPort = toPort;
    }

    /** Numbers the sends, or receives, of this connector: the peer counts the same. */
    long nextTransfer() {
        return transfers++;
    }

    /** Whether an operation was the last that was announced. */
    boolean hasPart(long opCount) {
        return last != null && last.opCount() == opCount;
    }

    /** The last operation that was announced; null if there was none. */
    @Nullable
    ProxyOp last() {
        return last;
    }

    /** What the data goes over; null while it is not connected. */
    synchronized @Nullable String transport() {
        return connection == null ? null : connection.transport();
    }

    /** Where the data of the last operation lies while it travels. */
    synchronized String mode() {
        if (last.user() != null) {
            return "PTR";
        }
        return connection != null && connection.info().shared() != null && last.protocol() == Protocol.SIMPLE ? "OFFSET"
                : "NORMAL";
    }

    /** Whether the two devices share memory with no proxy between them, so that one may read the other's. */
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
     * Goes on as far as nothing has to be waited for. Returns the connection once, when it is made. What was announced
     * early is announced then, before the device may begin.
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

    /** Which limit it is that has passed. */
    String overdueSetting() {
        boolean late = state != State.CONNECTING && deadlines.arrival != deadlines.connect;
        return late ? deadlines.arrival.toMillis() + " ms (MILLRACE_LATE_DEADLINE)"
                : deadlines.connect.toMillis() + " ms (MILLRACE_CONNECT_DEADLINE)";
    }

    /** The rank at the other end. */
    int peer() {
        return deadlines.peer;
    }

    /**
     * When it was asked for, how long the peer may take to come to it from then on, and both to connect once it has.
     */
    record Deadlines(int peer, long begun, Duration arrival, Duration connect) {
    }

    /** Gives up making the connection. May be called twice; the first reason stays. */
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
