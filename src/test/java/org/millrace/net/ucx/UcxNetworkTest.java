package org.millrace.net.ucx;

import java.util.Optional;
import org.junit.jupiter.api.Tag;
import org.millrace.net.Network;
import org.millrace.net.NetworkContract;
import org.millrace.net.socket.SocketNetwork;
import org.millrace.net.socket.stream.SocketOptions;

/** The network over UCX, by whatever transports UCX chooses between two ends of one process. */
@Tag("optimized")
class UcxNetworkTest extends NetworkContract {

    @Override
    protected Network newNetwork() {
        Ucx.assumeUsable();
        return new UcxNetwork(Optional.empty(), new SocketNetwork(SocketOptions.defaults()));
    }
}
