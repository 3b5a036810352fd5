package org.millrace.net.link;

import org.junit.jupiter.api.Tag;
import org.millrace.net.Network;
import org.millrace.net.NetworkContract;
import org.millrace.net.socket.SocketNetwork;
import org.millrace.net.socket.SocketOptions;

/** A fault that never occurs changes nothing: the wrapped sender works in the same way as the original sender. */
@Tag("slow")
class FaultlessFaultyNetworkTest extends NetworkContract {
    @Override
    protected Network newNetwork() {
        return new FaultyNetwork(new SocketNetwork(SocketOptions.defaults()), Fault.parse("cut:frame=100000000"));
    }

    @Override
    protected int framesWithoutAllocation() {
        return 250_000;
    }
}
