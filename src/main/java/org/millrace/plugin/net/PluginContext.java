package org.millrace.plugin.net;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameSender;
import org.millrace.net.Pending;

/**
 * What one communicator has open that NCCL holds no handle for: connections that it still connects. NCCL calls connect
 * again and again with the handle of one peer, until it gets a connection; if it gives up, it tells nobody.
 */
final class PluginContext implements AutoCloseable {

    private final Map<ConnectionKey, Pending<FrameSender>> connecting = new ConcurrentHashMap<>();
    private final DrainTimeout patience = new DrainTimeout();
    private final long communicator;

    /**
     * A context without connections.
     *
     * @param communicator NCCL's hash of the communicator, for messages
     */
    PluginContext(long communicator) {
        this.communicator = communicator;
    }

    /** Shared by the communicator's connections. */
    DrainTimeout patience() {
        return patience;
    }

    /** Goes on with a connection, or begins it; returns null while it is not made. */
    FrameSender connect(PeerHandle peer, NetEndpoint endpoint) {
        Pending<FrameSender> pending =
                connecting.computeIfAbsent(peer.key(), key -> endpoint.network().connect(peer.address(), key));
        FrameSender sender = null;
        boolean goesOn = false;
        try {
            sender = pending.poll();
            goesOn = sender == null;
        } finally {
            if (!goesOn) {
                connecting.remove(peer.key());
            }
        }
        return sender;
    }

    @Override
    public void close() {
        connecting.values().forEach(Pending::close);
        connecting.clear();
    }

    @Override
    public String toString() {
        return "communicator " + Long.toHexString(communicator);
    }
}
