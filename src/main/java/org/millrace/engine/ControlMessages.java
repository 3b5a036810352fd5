package org.millrace.engine;

import org.millrace.engine.bootstrap.ControlPlane;
import org.millrace.transport.TransportConnections.PeerMessages;

/**
 * What the ends of connections tell each other, over the control plane.
 *
 * @param control the ranks' control plane
 */
record ControlMessages(ControlPlane control) implements PeerMessages {

    @Override
    public void send(int peer, long tag, byte[] data) {
        control.send(peer, tag, data);
    }

    @Override
    public byte[] receive(int peer, long tag) {
        return control.receive(peer, tag);
    }
}
