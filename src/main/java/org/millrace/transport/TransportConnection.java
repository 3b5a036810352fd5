package org.millrace.transport;

import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.millrace.abi.ConnectionInfo;
import org.millrace.proxy.ConnectionName;
import org.millrace.proxy.ProxyConnection;
import org.millrace.proxy.ProxyOp;

/** An end that is connected. */
final class TransportConnection implements Connection {

    private static final Logger LOG = LogManager.getLogger(TransportConnection.class);

    private final ConnectionName name;
    private final String transport;
    private final TransportEnd end;
    private final ConnectionInfo info;
    private final List<ProxyConnection> proxies;
    private final AtomicBoolean closed = new AtomicBoolean();

    TransportConnection(ConnectionName name, String transport, TransportEnd end) {
        this.name = name;
        this.transport = (transport + " " + end.way()).strip();
        this.end = end;
        this.info = end.info();
        this.proxies = List.copyOf(end.proxyProgress());
    }

    @Override
    public ConnectionName name() {
        return name;
    }

    @Override
    public String transport() {
        return transport;
    }

    @Override
    public ConnectionInfo info() {
        return info;
    }

    @Override
    public List<ProxyConnection> proxies() {
        return proxies;
    }

    @Override
    public void announce(ProxyOp op) {
        end.announce(op);
    }

    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            free(name, end);
        }
    }

    /** The proxy's part first. That one part cannot be freed is no reason to keep the other. */
    static void free(ConnectionName name, TransportEnd end) {
        for (Runnable part : List.<Runnable>of(end::proxyFree, end::free)) {
            try {
                part.run();
            } catch (RuntimeException e) {
                LOG.warn("{}: what it holds could not all be freed", name, e);
            }
        }
    }
}
