package org.millrace.net.shm;

import org.junit.jupiter.api.Tag;
import org.millrace.config.ShmAccess;
import org.millrace.net.Network;
import org.millrace.net.NetworkContract;

/** Rings that are accessed with Chronicle Bytes. */
@Tag("slow")
@Tag("optimized")
class ShmNetworkChronicleTest extends NetworkContract {
    @Override
    protected Network newNetwork() {
        return new ShmNetwork(ShmOptions.defaults().withAccess(ShmAccess.CHRONICLE));
    }
}
