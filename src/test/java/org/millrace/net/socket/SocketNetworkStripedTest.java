package org.millrace.net.socket;

import org.junit.jupiter.api.Tag;
import org.millrace.net.Network;
import org.millrace.net.NetworkContract;
import org.millrace.net.TestOptions;

/** Payloads divided over three streams. The threshold for a division is so low that small frames reach it too. */
@Tag("slow")
@Tag("optimized")
class SocketNetworkStripedTest extends NetworkContract {
    @Override
    protected Network newNetwork() {
        return new SocketNetwork(TestOptions.frames(5).withStreams(3, 10_000));
    }

    @Override
    protected int framesWithoutAllocation() {
        return 100_000; // less than the default, because the copies of divided payloads take most of the test's time
    }
}
