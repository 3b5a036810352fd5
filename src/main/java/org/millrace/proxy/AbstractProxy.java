package org.millrace.proxy;

import org.jspecify.annotations.Nullable;
import org.millrace.abi.AbortFlag;
import org.millrace.net.PeerClosedException;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.ProxyConnection;
import org.millrace.proxy.spi.ProxyException;
import org.millrace.trace.AgentTrace;
import org.millrace.trace.ConnectionTrace;

/**
 * Base class of the proxies of connections. It has the name, the trace, the listener that is notified when the proxy
 * stops, and the reaction to an abort.
 *
 * <p>
 * After an abort of its communicator, a proxy does nothing until an agent removes the proxy. The kernels exit, so no
 * thread needs the data in slots and in the user's memory any longer. The proxy does not read or write this data,
 * receives no frames and changes no counter. A pass that already runs when the flag is raised may still access the
 * connection's memory and operands. Later passes do not access them. The connection's memory exists until the proxy is
 * removed. The user may reuse operands when the kernel has exited and that pass has ended.
 */
public abstract class AbstractProxy implements ProxyConnection {

    /** Name of the connection. */
    protected final ConnectionName name;
    private final ProxyConnection.StopListener listener;
    /** Abort flag of the communicator's kernels; null if the communicator has no such flag. */
    private @Nullable AbortFlag abort;
    /** Trace of the connection; null if the connection is not traced. */
    protected @Nullable ConnectionTrace trace;

    /** Creates the proxy of a connection. */
    protected AbstractProxy(ConnectionName name, ProxyConnection.StopListener listener) {
        this.name = name;
        this.listener = listener;
    }

    @Override
    public final ConnectionName name() {
        return name;
    }

    /**
     * Sets a flag that stops the proxy: once the flag is raised, {@link #progress} does nothing. Must be called before
     * the proxy is added to an agent.
     *
     * @param flag abort flag of the communicator's kernels
     */
    public final void abortedBy(AbortFlag flag) {
        abort = flag;
    }

    /**
     * Makes a pass, unless the abort flag is raised. The flag is read first in each call. A raised flag is never
     * lowered. Kernels also exit when they read the raised flag.
     */
    @Override
    public final int progress() {
        return isAborted() ? 0 : pass();
    }

    /** Returns whether the communicator was aborted. No thread then needs the data in flight any longer. */
    protected final boolean isAborted() {
        return abort != null && abort.raisedAcquire();
    }

    /**
     * Makes as much progress as is possible without blocking. Returns the amount of work done, as {@link #progress}
     * does.
     */
    protected abstract int pass();

    /**
     * Sets the trace of the connection. Must be called before the proxy is added to an agent.
     *
     * @param written trace of this connection. The proxy closes the trace when the proxy stops. Null if the connection
     *                has no trace
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

    /**
     * Returns whether a failure is an expected end of the connection. Either the device was aborted, or the peer closed
     * the connection while this end had no data that the peer needs.
     */
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

    /**
     * Thrown if the device continues without credits, as NCCL's kernels do after an abort of their communicator. The
     * steps that the device posts from then on are not valid.
     */
    public static final class DeviceAbortedException extends ProxyException {

        private static final long serialVersionUID = 1L;

        /** @param message description of the observation that indicates the abort */
        public DeviceAbortedException(String message) {
            super(message);
        }
    }
}
