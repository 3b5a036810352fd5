package org.millrace.net.socket;

import org.junit.jupiter.api.Tag;
import org.millrace.net.Network;
import org.millrace.net.NetworkContract;

/** Payloads divided over three streams, from a length that small frames reach too. */
@Tag("slow")
@Tag("optimized")
class SocketNetworkStripedTest extends NetworkContract {
    @Override
    protected Network newNetwork() {
        return new SocketNetwork(SocketOptions.defaults().withStreams(3, 10_000).withFramesInFlight(5));
    }

    @Override
    protected int framesWithoutAllocation() {
        return 100_000; // most time passes in copies
    }
}
