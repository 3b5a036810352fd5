package org.millrace.net.link;

import org.junit.jupiter.api.Tag;
import org.millrace.net.Network;
import org.millrace.net.NetworkContract;
import org.millrace.net.socket.SocketNetwork;
import org.millrace.net.socket.SocketOptions;

/** Tests a network behind an emulated link against all requirements for a network. */
@Tag("slow")
class LinkNetworkTest extends NetworkContract {
    @Override
    protected Network newNetwork() {
        return new LinkNetwork(new SocketNetwork(SocketOptions.defaults()),
                new LinkTable("rate=400Gbit,delay=5us,jitter=2us"), "here", System::nanoTime, false);
    }

    @Override
    protected int framesWithoutAllocation() {
        return 100_000;
    }
}
