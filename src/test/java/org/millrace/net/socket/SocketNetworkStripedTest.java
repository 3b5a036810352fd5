package org.millrace.net.socket;

import org.junit.jupiter.api.Tag;
import org.millrace.net.Network;
import org.millrace.net.NetworkContract;

/** Payloads divided over three streams. The threshold for a division is so low that small frames reach it too. */
@Tag("slow")
@Tag("optimized")
class SocketNetworkStripedTest extends NetworkContract {
    @Override
    protected Network newNetwork() {
        return new SocketNetwork(SocketOptions.defaults().withStreams(3, 10_000).withFramesInFlight(5));
    }

    @Override
    protected int framesWithoutAllocation() {
        return 100_000; // less than the default, because the copies of divided payloads take most of the test's time
    }
}
