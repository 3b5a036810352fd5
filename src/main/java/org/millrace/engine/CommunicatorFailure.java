package org.millrace.engine;

import java.util.Objects;
import java.util.function.Consumer;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.millrace.CommunicatorException;
import org.millrace.MismatchException;
import org.millrace.PeerLostException;
import org.millrace.bootstrap.ControlPlane;
import org.millrace.bootstrap.GroupFailure;
import org.millrace.device.DeviceCommunicator;
import org.millrace.net.ConnectionException;
import org.millrace.proxy.spi.ProxyConnection;
import org.millrace.proxy.spi.ProxyException;
import org.millrace.proxy.spi.ProxyException.DisagreementException;

/** Failure of a communicator, as its proxies report it. */
final class CommunicatorFailure extends GroupFailure implements ProxyConnection.StopListener {

    private static final Logger LOG = LogManager.getLogger(CommunicatorFailure.class);

    private final DeviceCommunicator device;
    private final Consumer<? super Throwable> trace;

    /** @param trace action that records the failure */
    CommunicatorFailure(ControlPlane control, DeviceCommunicator device, Consumer<? super Throwable> trace) {
        super(control);
        this.device = device;
        this.trace = trace;
    }

    /** Aborts the device, so that its kernels end, and records the failure. */
    @Override
    protected void failed() {
        device.abort();
        trace.accept(Objects.requireNonNull(get(), "called when it has failed"));
    }

    @Override
    protected String remedy() {
        return "close it, or continue with the living ranks by shrink";
    }

    void failOf(Throwable thrown) {
        fail(thrown instanceof DisagreementException disagreement
                ? new MismatchException(thrown.getMessage(), disagreement.connection().selfRank(),
                        disagreement.connection().peerRank(), null, thrown)
                : thrown);
    }

    /** Reports the failure that stopped a proxy. Does nothing if the proxy stopped on request, without a failure. */
    @Override
    public void stopped(ProxyConnection connection, Throwable thrown) {
        if (thrown != null) {
            String what = thrown instanceof ProxyException ? thrown.getMessage()
                    : connection.name() + ": " + thrown.getMessage();
            LOG.debug("{}; last state of the connection: {}", what, connection.lastSeen());
            int rank = connection.name().selfRank();
            int peer = connection.name().peerRank();
            if (thrown instanceof ConnectionException) {
                suspect(new PeerLostException(what, rank, peer, null, thrown));
            } else if (thrown instanceof DisagreementException) {
                fail(new MismatchException(what, rank, peer, null, thrown));
            } else {
                fail(new CommunicatorException(what, rank, peer, null, thrown));
            }
        }
    }
}
