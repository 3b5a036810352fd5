package org.millrace.net.socket;

import org.junit.jupiter.api.Tag;
import org.millrace.net.Network;
import org.millrace.net.NetworkContract;

/** One stream, as in the default options. */
@Tag("optimized")
class SocketNetworkTest extends NetworkContract {
    @Override
    protected Network newNetwork() {
        return new SocketNetwork(SocketOptions.defaults());
    }
}
