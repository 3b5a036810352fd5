package org.millrace.engine.connect;

import org.millrace.MillraceException;
import org.millrace.device.work.DeviceCommunicator;
import org.millrace.engine.bootstrap.ControlPlane;
import org.millrace.engine.bootstrap.GroupFailure;
import org.millrace.net.ConnectionException;
import org.millrace.proxy.ProxyConnection;
import org.millrace.proxy.ProxyException;
import org.millrace.proxy.StopListener;

/** What went wrong with a communicator, as its proxies tell it. */
public final class CommunicatorFailure extends GroupFailure implements StopListener {

    private final DeviceCommunicator device;

    public CommunicatorFailure(ControlPlane control, DeviceCommunicator device) {
        super(control);
        this.device = device;
    }

    /** Kernels leave. */
    @Override
    protected void failed() {
        device.abort();
    }

    /** A proxy stops by itself only because something failed. */
    @Override
    public void stopped(ProxyConnection connection, Throwable thrown) {
        if (thrown != null) {
            String what = thrown instanceof ProxyException ? thrown.getMessage()
                    : connection.name() + ": " + thrown.getMessage();
            MillraceException named = new MillraceException(what + " (" + connection.lastSeen() + ")", thrown);
            if (thrown instanceof ConnectionException) {
                suspect(named);
            } else {
                fail(named);
            }
        }
    }
}
