package org.millrace.net.ucx;

import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Tag;
import org.millrace.net.Network;
import org.millrace.net.NetworkContract;
import org.millrace.net.socket.SocketNetwork;
import org.millrace.net.socket.SocketOptions;

/** The network over UCX's TCP. Its endpoints detect that their peers are gone. */
@Tag("slow")
@Tag("optimized")
class UcxTcpNetworkTest extends NetworkContract {

    @Override
    protected Network newNetwork() {
        Ucx.assumeUsable();
        return new UcxNetwork(UcxContext.get(Optional.empty(), Map.of("TLS", "tcp")),
                new SocketNetwork(SocketOptions.defaults()));
    }

    @Override
    protected int framesWithoutAllocation() {
        return 50_000; // fewer than the default number of frames, because each frame needs a system call
    }
}
