package org.millrace.proxy;

import org.jspecify.annotations.Nullable;
import org.millrace.abi.AbortFlag;
import org.millrace.net.PeerClosedException;
import org.millrace.trace.AgentTrace;
import org.millrace.trace.ConnectionTrace;

/**
 * Common part of all proxies of connections: a name, a trace, a listener that is notified when the proxy stops, and the
 * reaction to an abort.
 *
 * <p>
 * After an abort of its communicator a proxy does nothing until it is removed. The kernels exit then, and the data in
 * slots and in the user's memory has no owner. The proxy reads and writes none of it, takes nothing from its network
 * and moves no counter. A pass that is running when the flag is raised accesses only the connection's own memory and
 * operands. The connection's memory exists until the proxy is removed. Operands belong to the user again when the
 * kernel has exited and that pass has also ended.
 */
public abstract class AbstractProxy implements ProxyConnection {

    /** The connection. */
    protected final ConnectionName name;
    private final ProxyConnection.StopListener listener;
    /** Abort flag of the communicator's kernels; null if nothing aborts the device. */
    private @Nullable AbortFlag abort;
    /** Trace of the connection; null if nothing is traced. */
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
     * Makes the proxy do nothing once a flag is raised. Called before the proxy is added to an agent.
     *
     * @param flag abort flag of the communicator's kernels
     */
    public final void abortedBy(AbortFlag flag) {
        abort = flag;
    }

    /**
     * Reads the abort flag before everything else. The flag is a word that is written once, and a kernel that sees it
     * exits, too.
     */
    @Override
    public final int progress() {
        return isAborted() ? 0 : pass();
    }

    /** Returns whether the communicator was aborted, so that the data in flight has no owner. */
    protected final boolean isAborted() {
        return abort != null && abort.raisedAcquire();
    }

    /**
     * Moves all data that can be moved without blocking. Returns the amount of work done, as {@link #progress} does.
     */
    protected abstract int pass();

    /**
     * Sets the trace of the connection. Called before the proxy is added to an agent.
     *
     * @param written trace of this connection, which is closed when the proxy stops; null for no trace
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
     * Returns whether a failure is expected. A peer that closes while no data is owed to it is not a failure, and
     * neither is an aborted device.
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
     * The device continues without credits, as NCCL's kernels do once their communicator is aborted. The steps that it
     * posts have no meaning then.
     */
    public static final class DeviceAbortedException extends ProxyException {

        private static final long serialVersionUID = 1L;

        /** Creates the exception with a message that states how the abort was detected. */
        public DeviceAbortedException(String message) {
            super(message);
        }
    }
}
