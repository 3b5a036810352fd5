package org.millrace.net.auto;

import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.millrace.net.Connected;
import org.millrace.net.Network;
import org.millrace.net.NetworkContract;
import org.millrace.net.shm.ShmOptions;
import org.millrace.net.socket.SocketOptions;

/** Both ends on one host use shared memory. */
@Tag("slow")
class AutoNetworkTest extends NetworkContract {

    @Override
    protected Network newNetwork() {
        return NetworkOptions.NetworkChoice.AUTO.open(SocketOptions.defaults(), ShmOptions.defaults());
    }

    @Test
    void sharedMemoryIsChosen() {
        try (Connected ends = Connected.make(network, network)) {
            assertTrue(ends.sender().toString().startsWith("shared-memory"), ends.sender().toString());
            assertTrue(ends.receiver().toString().startsWith("shared-memory"), ends.receiver().toString());
        }
    }
}
