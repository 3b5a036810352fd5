package org.millrace.net.socket;

import org.millrace.net.Network;
import org.millrace.net.NetworkContract;
import org.millrace.net.socket.stream.SocketOptions;

/** One stream, as the defaults are. */
class SocketNetworkTest extends NetworkContract {
    @Override
    protected Network newNetwork() {
        return new SocketNetwork(SocketOptions.defaults());
    }
}
