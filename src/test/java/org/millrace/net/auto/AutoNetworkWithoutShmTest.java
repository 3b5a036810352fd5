package org.millrace.net.auto;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.millrace.net.Connected;
import org.millrace.net.Network;
import org.millrace.net.NetworkContract;
import org.millrace.net.TestOptions;
import org.millrace.net.socket.SocketOptions;

/** A host without shared memory uses TCP. */
@Tag("slow")
class AutoNetworkWithoutShmTest extends NetworkContract {

    @Override
    protected Network newNetwork() {
        return NetworkOptions.NetworkChoice.AUTO.open(SocketOptions.defaults(),
                TestOptions.shm(Path.of("/there/is/no/such/directory")));
    }

    @Override
    protected int framesWithoutAllocation() {
        return 250_000;
    }

    @Test
    void tcpIsChosen() {
        try (Connected ends = Connected.make(network, network)) {
            assertTrue(ends.sender().toString().startsWith("socket"), ends.sender().toString());
            assertTrue(ends.receiver().toString().startsWith("socket"), ends.receiver().toString());
        }
    }
}
