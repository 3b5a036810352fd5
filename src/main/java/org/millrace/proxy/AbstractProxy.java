package org.millrace.proxy;

import org.jspecify.annotations.Nullable;
import org.millrace.abi.AbortFlag;
import org.millrace.net.PeerClosedException;
import org.millrace.trace.AgentTrace;
import org.millrace.trace.ConnectionTrace;

/**
 * What all proxies of connections have in common: a name, a listener that learns that they stopped, their trace, and
 * that they stand still once their communicator was aborted: its kernels leave, and what is in slots and in the user's
 * memory then is nobody's data. A proxy reads none of it, writes none, takes nothing from its network and moves no
 * counter, until it is removed. What a pass does that is under way when the flag goes up lies in the connection's own
 * memory, which is there until the proxy is removed, and in operands: these are the user's again when that pass is over
 * too, which is when the kernel has left.
 */
public abstract class AbstractProxy implements ProxyConnection {

    /** The connection. */
    protected final ConnectionName name;
    private final ProxyConnection.StopListener listener;
    /** Null if nothing aborts the device. */
    private @Nullable AbortFlag abort;
    /** Null if nothing is traced. */
    protected @Nullable ConnectionTrace trace;

    /** A proxy of a connection. */
    protected AbstractProxy(ConnectionName name, ProxyConnection.StopListener listener) {
        this.name = name;
        this.listener = listener;
    }

    @Override
    public final ConnectionName name() {
        return name;
    }

    /**
     * Has the proxy stand still once a flag is up. Called before the proxy is added to an agent.
     *
     * @param flag that of the communicator's kernels
     */
    public final void abortedBy(AbortFlag flag) {
        abort = flag;
    }

    /** One read of a word that is written once comes before everything: the kernel that sees it leaves, too. */
    @Override
    public final int progress() {
        return isAborted() ? 0 : pass();
    }

    /** Whether what is under way is nobody's data any more. */
    protected final boolean isAborted() {
        return abort != null && abort.raisedAcquire();
    }

    /** Moves what can be moved without waiting; returns how much, as {@link #progress}. */
    protected abstract int pass();

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

    /**
     * The device runs on without credits, as NCCL's kernels do once their communicator is aborted: what it posts means
     * nothing any more.
     */
    public static final class DeviceAbortedException extends ProxyException {

        private static final long serialVersionUID = 1L;

        /** What gave the device away. */
        public DeviceAbortedException(String message) {
            super(message);
        }
    }
}
