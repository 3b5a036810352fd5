package org.millrace.net.auto;

import org.millrace.net.ConnectionException;
import org.millrace.net.FrameReceiver;
import org.millrace.net.Pending;

/** A connection that is expected on both networks, and comes on one. */
final class ExpectedAnywhere implements Pending<FrameReceiver> {

    /** Null where there is no shared memory, or no longer any hope of it. */
    private Pending<FrameReceiver> overShm;
    private final Pending<FrameReceiver> overSocket;

    ExpectedAnywhere(Pending<FrameReceiver> overShm, Pending<FrameReceiver> overSocket) {
        this.overShm = overShm;
        this.overSocket = overSocket;
    }

    @Override
    public synchronized FrameReceiver poll() {
        FrameReceiver receiver = pollShm();
        if (receiver != null) {
            overSocket.close();
            return new AutoReceiver(receiver, true);
        }
        receiver = overSocket.poll();
        if (receiver == null) {
            return null;
        }
        if (overShm != null) {
            overShm.close();
        }
        return new AutoReceiver(receiver, false);
    }

    private FrameReceiver pollShm() {
        if (overShm == null) {
            return null;
        }
        try {
            return overShm.poll();
        } catch (ConnectionException e) {
            // The peer's ring cannot be mapped here, which the network has logged and told the peer: it comes over TCP
            // now. Or the listener was closed, which
            // the other network says too.
            overShm = null;
            return null;
        }
    }

    @Override
    public synchronized void close() {
        if (overShm != null) {
            overShm.close();
        }
        overSocket.close();
    }
}
