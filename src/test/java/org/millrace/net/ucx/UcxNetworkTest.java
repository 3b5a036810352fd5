package org.millrace.net.ucx;

import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Tag;
import org.millrace.net.Network;
import org.millrace.net.NetworkContract;
import org.millrace.net.socket.SocketNetwork;
import org.millrace.net.socket.stream.SocketOptions;
import org.millrace.net.ucx.library.UcxContext;

/** The network over UCX's shared memory, where endpoints do not notice that their peers are gone. */
@Tag("optimized")
class UcxNetworkTest extends NetworkContract {

    @Override
    protected Network newNetwork() {
        Ucx.assumeUsable();
        return new UcxNetwork(UcxContext.get(Optional.empty(), Map.of("TLS", "posix,sysv,cma,self")),
                new SocketNetwork(SocketOptions.defaults()));
    }

    @Override
    protected int framesWithoutAllocation() {
        return 200_000;
    }
}
