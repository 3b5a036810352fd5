package org.millrace.net.shm;

import org.junit.jupiter.api.Tag;
import org.millrace.net.Network;
import org.millrace.net.NetworkContract;
import org.millrace.net.TestOptions;

/** A ring that is shorter than many payloads. Its positions soon pass 2^63. */
@Tag("slow")
@Tag("optimized")
class ShmNetworkTinyRingTest extends NetworkContract {
    @Override
    protected Network newNetwork() {
        return new ShmNetwork(TestOptions.ring(64 << 10, 4 << 10), Long.MAX_VALUE - 63 - (1 << 20));
    }
}
