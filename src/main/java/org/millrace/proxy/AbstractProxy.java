package org.millrace.proxy;

import org.jspecify.annotations.Nullable;

/** What all proxies of connections have in common: a name, and a listener that learns that they stopped. */
public abstract class AbstractProxy implements ProxyConnection {

    /** The connection. */
    protected final ConnectionName name;
    private final StopListener listener;

    /**
     * A proxy of a connection.
     *
     * @param name     the connection
     * @param listener learns that the proxy stopped
     */
    protected AbstractProxy(ConnectionName name, StopListener listener) {
        this.name = name;
        this.listener = listener;
    }

    @Override
    public final ConnectionName name() {
        return name;
    }

    @Override
    public void stopped(@Nullable Throwable failure) {
        listener.stopped(this, failure);
    }
}
