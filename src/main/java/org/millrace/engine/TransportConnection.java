package org.millrace.engine;

import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.millrace.abi.ConnectionInfo;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.ProxyConnection;
import org.millrace.proxy.spi.ProxyOp;
import org.millrace.transport.TransportEnd;

/** This rank's end of a connection that is ready for a device: one direction of one channel to one peer. */
final class TransportConnection implements AutoCloseable {

    private static final Logger LOG = LogManager.getLogger(TransportConnection.class);

    private final ConnectionName name;
    private final String transport;
    private final TransportEnd end;
    private final ConnectionInfo info;
    private final List<ProxyConnection> proxies;
    private final AtomicBoolean closed = new AtomicBoolean();

    /** @param end this rank's end of the connection; the end is already connected */
    TransportConnection(ConnectionName name, String transport, TransportEnd end) {
        this.name = name;
        this.transport = (transport + " " + end.way()).strip();
        this.end = end;
        this.info = end.info();
        this.proxies = List.copyOf(end.proxyProgress());
    }

    /** {@return the connection's name in messages} */
    public ConnectionName name() {
        return name;
    }

    /**
     * {@return the name of the transport and how this end uses it, such as {@code "P2P"}, {@code "SHM by copy"} or
     * {@code "NET socket"}}
     */
    public String transport() {
        return transport;
    }

    /** {@return the slots and counters that the device needs} */
    public ConnectionInfo info() {
        return info;
    }

    /** {@return the proxies that the caller must add to an agent; empty if the devices access each other's memory} */
    public List<ProxyConnection> proxies() {
        return proxies;
    }

    /** {@return whether the peer's device wakes this rank after each action of that device} */
    public boolean wakesThisRank() {
        return end.wakesThisRank();
    }

    /**
     * Announces an operation to the proxies. Called in the order of the device's operations. Has no effect if the
     * connection has no proxies.
     */
    public void announce(ProxyOp op) {
        end.announce(op);
    }

    /** Frees the resources of the connection, after its proxies have stopped. May be called twice. */
    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            free(name, end);
        }
    }

    /**
     * Frees the resources of an end: first the proxy's resources, and then the device's resources. If the proxy's
     * resources cannot be freed, the device's resources are freed nevertheless.
     */
    static void free(ConnectionName name, TransportEnd end) {
        for (Runnable part : List.<Runnable>of(end::proxyFree, end::free)) {
            try {
                part.run();
            } catch (RuntimeException e) {
                LOG.warn("{}: some of its resources could not be freed", name, e);
            }
        }
    }
}
