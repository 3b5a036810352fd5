package org.millrace.engine;

import java.util.ArrayDeque;
import java.util.List;
import java.util.Queue;
import java.util.function.Function;
import java.util.function.Supplier;
import org.millrace.abi.Protocol;
import org.millrace.device.channel.DeviceEndpoint;
import org.millrace.net.Pending;
import org.millrace.proxy.ProxyOp;
import org.millrace.transport.Connection;

/**
 * One direction of one channel to one peer, connected or on the way to be: operations can be issued for it at once, and
 * wait on the device and in a queue here.
 *
 * @param <P> the device's end of it
 */
final class Link<P> {

    private final String name;
    private final DeviceEndpoint<P> endpoint;
    private final Hops<P> alone;
    private final Supplier<Pending<Connection>> maker;
    private final Function<Connection, P> toPort;
    private final Queue<ProxyOp> early = new ArrayDeque<>();
    private Pending<Connection> pending;
    private Connection connection;
    /** Sends or receives issued so far. Guarded by whoever issues. */
    private long transfers;
    /** The last operation that was announced. Guarded by whoever issues. */
    private ProxyOp last;

    /**
     * @param name   which connection, for messages
     * @param maker  begins to make it
     * @param toPort makes the device's end of it
     */
    Link(String name, Supplier<Pending<Connection>> maker, Function<Connection, P> toPort) {
        this.name = name;
        this.endpoint = new DeviceEndpoint<>(name);
        this.alone = Hops.of(List.of(this));
        this.maker = maker;
        this.toPort = toPort;
    }

    DeviceEndpoint<P> endpoint() {
        return endpoint;
    }

    /** This link and no other. */
    Hops<P> alone() {
        return alone;
    }

    /** Numbers the sends, or receives, of this link: the peer counts the same. */
    long nextTransfer() {
        return transfers++;
    }

    /** Says that the link has no part in an operation, if it has none. */
    void announceUnlessPart(ProxyOp without) {
        if (last == null || last.opCount() != without.opCount()) {
            announce(without);
        }
    }

    /** The last operation that was announced; null if there was none. */
    ProxyOp last() {
        return last;
    }

    /** What the data goes over; null while the link is not connected. */
    synchronized String transport() {
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

    synchronized void announce(ProxyOp op) {
        last = op;
        if (connection == null) {
            early.add(op);
        } else {
            connection.announce(op);
        }
    }

    /**
     * Goes on making the connection; returns it once, when it is made. What was announced early is announced then,
     * before the device may begin.
     */
    Connection poll() {
        if (pending == null) {
            pending = maker.get();
        }
        Connection made = pending.poll();
        if (made == null) {
            return null;
        }
        P port = toPort.apply(made);
        synchronized (this) {
            early.forEach(made::announce);
            early.clear();
            connection = made;
        }
        endpoint.connect(port);
        return made;
    }

    /** Gives up making the connection. */
    void giveUp() {
        if (pending != null) {
            pending.close();
        }
    }

    @Override
    public String toString() {
        return name;
    }
}
