package org.millrace.net.auto;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.net.Connected;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.Network;
import org.millrace.net.Pending;
import org.millrace.net.TestOptions;
import org.millrace.net.shm.SharedMemory;
import org.millrace.net.shm.ShmOptions;
import org.millrace.net.socket.SocketOptions;

/** Choice of the network between two processes, depending on their shared resources. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class NetworkChoiceTest {

    @TempDir
    private Path oneDirectory;
    @TempDir
    private Path otherDirectory;

    private static Network auto(Path directory) {
        return NetworkOptions.NetworkChoice.AUTO.open(SocketOptions.defaults(), TestOptions.shm(directory));
    }

    private static String senderBetween(Network from, Listener listener, byte[] address) {
        ConnectionKey key = Connected.newKey();
        Pending<FrameReceiver> accepting = listener.expect(key);
        Pending<FrameSender> connecting = from.connect(address, key);
        try (Connected made = Connected.await(listener, connecting, accepting)) {
            return made.sender().toString();
        }
    }

    @Test
    void processesThatShareADirectoryShareMemory() {
        try (Network one = auto(oneDirectory); Network other = auto(oneDirectory); Listener listener = one.listen()) {
            assertTrue(senderBetween(other, listener, listener.address()).startsWith("shared-memory"));
        }
    }

    @Test
    void containersOfOneHostWithDirectoriesOfTheirOwnUseTcp() {
        try (Network one = auto(oneDirectory); Network other = auto(otherDirectory); Listener listener = one.listen()) {
            assertTrue(senderBetween(other, listener, listener.address()).startsWith("socket"));
        }
    }

    @Test
    void processesOfTwoHostsUseTcp() {
        try (Network one = auto(oneDirectory); Network other = auto(oneDirectory); Listener listener = one.listen()) {
            byte[] address = listener.address();
            ByteBuffer.wrap(address).order(ByteOrder.LITTLE_ENDIAN).putLong(52, SharedMemory.thisHost() + 1);
            assertTrue(senderBetween(other, listener, address).startsWith("socket"));
        }
    }

    @Test
    void aListenerWhoseSocketWasDeletedIsReachedOverTcp() throws Exception {
        try (Network one = auto(oneDirectory);
                Listener listener = one.listen();
                Stream<Path> files = Files.list(oneDirectory)) {
            Files.delete(files.findFirst().orElseThrow());
            assertTrue(senderBetween(one, listener, listener.address()).startsWith("socket"));
        }
    }

    @Test
    void aForcedNetworkTakesItsOwnAddressesOnly() {
        try (Network auto = auto(oneDirectory);
                Network shm =
                        NetworkOptions.NetworkChoice.parse("SHM").open(SocketOptions.defaults(), ShmOptions.defaults());
                Network socket = NetworkOptions.NetworkChoice.parse("socket")
                        .open(SocketOptions.defaults(), ShmOptions.defaults());
                Listener automatic = auto.listen();
                Listener overShm = shm.listen();
                Listener overSocket = socket.listen()) {
            assertEquals("auto shm socket", auto.name() + " " + shm.name() + " " + socket.name());
            assertThrows(ConnectionException.class, () -> auto.connect(overShm.address(), Connected.newKey()));
            assertThrows(ConnectionException.class, () -> auto.connect(overSocket.address(), Connected.newKey()));
            assertThrows(ConnectionException.class, () -> shm.connect(automatic.address(), Connected.newKey()));
            assertThrows(ConnectionException.class, () -> shm.connect(overSocket.address(), Connected.newKey()));
        }
    }

    @Test
    void anUnknownNameIsAnErrorThatListsTheKnownOnes() {
        assertTrue(assertThrows(IllegalArgumentException.class, () -> NetworkOptions.NetworkChoice.parse("infiniband"))
                .getMessage()
                .contains("auto, shm, socket, ucx"));
    }
}
