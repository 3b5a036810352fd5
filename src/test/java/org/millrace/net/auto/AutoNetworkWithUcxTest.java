package org.millrace.net.auto;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.net.Connected;
import org.millrace.net.Network;
import org.millrace.net.NetworkContract;
import org.millrace.net.TestOptions;
import org.millrace.net.shm.ShmNetwork;
import org.millrace.net.socket.SocketNetwork;
import org.millrace.net.socket.SocketOptions;
import org.millrace.net.ucx.Ucx;
import org.millrace.net.ucx.UcxNetwork;

/**
 * Choice of the network between processes without shared memory. Both processes act as if a card that UCX supports were
 * present.
 */
class AutoNetworkWithUcxTest extends NetworkContract {

    @TempDir
    private Path directory;

    /** Opens a network without a directory, so that no memory is shared. */
    private Network open(boolean hasUcx) {
        SocketNetwork socket = new SocketNetwork(SocketOptions.defaults());
        return new AutoNetwork(new ShmNetwork(TestOptions.shm(directory.resolve("none"))), socket,
                hasUcx ? Optional.of(new UcxNetwork(Optional.empty(), socket)) : Optional.empty());
    }

    @Override
    protected Network newNetwork() {
        Ucx.assumeUsable();
        return open(true);
    }

    @Override
    protected int framesWithoutAllocation() {
        return 0; // none, as this JVM has no optimizing compiler; the chosen network's own test checks allocation
    }

    @Test
    void ucxIsTakenWhereBothHaveIt() {
        try (Network none = open(false)) {
            for (Network[] pair : new Network[][] {{network, none}, {none, network}}) {
                try (Connected ends = Connected.make(pair[0], pair[1])) {
                    assertFalse(ends.sender().toString().contains("UCX"), ends.sender().toString());
                    assertFalse(ends.receiver().toString().contains("UCX"), ends.receiver().toString());
                }
            }
            try (Connected ends = Connected.make(network, network)) {
                assertTrue(ends.sender().toString().contains("UCX"), ends.sender().toString());
                assertTrue(ends.receiver().toString().contains("UCX"), ends.receiver().toString());
            }
        }
    }
}
