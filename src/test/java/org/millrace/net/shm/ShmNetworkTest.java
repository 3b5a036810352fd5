package org.millrace.net.shm;

import org.junit.jupiter.api.Tag;
import org.millrace.net.Network;
import org.millrace.net.NetworkContract;

/** Shared memory with default options. */
@Tag("optimized")
class ShmNetworkTest extends NetworkContract {
    @Override
    protected Network newNetwork() {
        return new ShmNetwork(ShmOptions.defaults());
    }
}
