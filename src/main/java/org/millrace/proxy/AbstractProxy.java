package org.millrace.proxy;

import org.jspecify.annotations.Nullable;
import org.millrace.net.PeerClosedException;
import org.millrace.trace.AgentTrace;
import org.millrace.trace.ConnectionTrace;

/**
 * What all proxies of connections have in common: a name, a listener that learns that they stopped, and their trace.
 */
public abstract class AbstractProxy implements ProxyConnection {

    /** The connection. */
    protected final ConnectionName name;
    private final StopListener listener;
    /** Null if nothing is traced. */
    protected @Nullable ConnectionTrace trace;

    /** A proxy of a connection. */
    protected AbstractProxy(ConnectionName name, StopListener listener) {
        this.name = name;
        this.listener = listener;
    }

    @Override
    public final ConnectionName name() {
        return name;
    }

    /**
     * Has what the connection does traced. Called before the proxy is added to an agent.
     *
     * @param written the connection's own, which is closed when the proxy stops; null for nothing
     */
    public final void tracedBy(@Nullable ConnectionTrace written) {
        trace = written;
    }

    @Override
    public final void servedBy(AgentTrace agent) {
        if (trace != null) {
            trace.servedBy(agent);
        }
    }

    /** A peer that leaves when nothing is owed to it is no failure, nor is a device that was told to give up. */
    private boolean isMeant(Throwable failure) {
        return failure instanceof DeviceAbortedException || failure instanceof PeerClosedException && !owesData();
    }

    @Override
    public void stopped(@Nullable Throwable failure) {
        if (trace != null) {
            if (failure != null && !isMeant(failure)) {
                String why = String.valueOf(failure.getMessage());
                trace.failed(why.startsWith(name.toString()) ? why : name + ": " + why);
            }
            trace.close();
        }
        listener.stopped(this, failure);
    }
}
