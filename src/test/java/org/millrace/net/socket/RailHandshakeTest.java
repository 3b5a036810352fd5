package org.millrace.net.socket;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.millrace.net.Connected;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.Pending;
import org.millrace.net.connection.HandshakeReply;

/** Number of rails that two sides' addresses allow, and behavior if some addresses cannot be reached. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class RailHandshakeTest {

    private static SocketNetwork network(int rails, int streams) {
        return new SocketNetwork(SocketOptions.defaults()
                .withStreams(streams, 64 << 10)
                .withRails(SocketNetworkRailsTest.loopbacks(rails)));
    }

    private static int rails(Connected ends) {
        return ends.sender() instanceof FrameSender.Railed railed ? railed.rails() : 1;
    }

    @Test
    void theSideWithMoreAddressesSaysHowManyRails() {
        for (int[] each : new int[][] {{1, 1, 1}, {2, 2, 2}, {1, 3, 3}, {3, 1, 3}, {8, 8, 8}}) {
            try (SocketNetwork from = network(each[0], 1);
                    SocketNetwork to = network(each[1], 1);
                    Connected ends = Connected.make(from, to)) {
                assertEquals(each[2], rails(ends), each[0] + " to " + each[1]);
                assertEquals(each[2] > 1, ends.receiver().toString().contains("(" + each[2] + " rails)"),
                        ends.receiver().toString());
            }
        }
    }

    @Test
    void eachRailHasItsStreamsAndAllOfThemSixteenAtMost() throws IOException {
        for (int[] each : new int[][] {{2, 3, 6}, {3, 8, 15}}) {
            OpenSockets before = OpenSockets.now();
            try (SocketNetwork network = network(each[0], each[1]); Listener listener = network.listen()) {
                Connected ends = Connected.make(network, listener, Connected.newKey());
                assertEquals(each[0] + 2 + 2 * each[2], before.opened(),
                        "and one that is kept for when there is none, and the port for lost streams");
                assertEquals(each[0], rails(ends));
            }
            assertEquals(0, before.opened());
        }
    }

    /**
     * Another program answers the request for the listener's addresses. The answer contains two addresses, one of them
     * without a listener.
     */
    @Test
    void railsThatLeadNowhereAreLeftOut() throws IOException {
        try (ServerSocket teller = new ServerSocket(0, 10, InetAddress.getLoopbackAddress());
                SocketNetwork from = network(3, 2);
                SocketNetwork to = network(1, 1);
                Listener listener = to.listen()) {
            int dead;
            try (ServerSocket closedAtOnce = new ServerSocket(0, 1, InetAddress.ofLiteral("127.0.0.2"))) {
                dead = closedAtOnce.getLocalPort();
            }
            ConnectionKey key = Connected.newKey();
            Pending<FrameReceiver> accepting = listener.expect(key);
            byte[] address = AddressFormat.SOCKET.encode((InetSocketAddress) teller.getLocalSocketAddress(),
                    AddressFormat.secret(listener.address()), 2);
            Pending<FrameSender> connecting = from.connect(address, key);
            try (Socket accepted = teller.accept()) {
                accepted.getOutputStream().write(HandshakeReply.ACCEPTED.encode(StreamHello.FORMAT).array());
                accepted.getOutputStream()
                        .write(AddressFormat
                                .encodeList(List.of(new InetSocketAddress(InetAddress.ofLiteral("127.0.0.2"), dead),
                                        AddressFormat.SOCKET.decode(listener.address())))
                                .array());
            }
            try (Connected made = Connected.await(listener, connecting, accepting)) {
                // The client attempted three rails, because it has three addresses. The first and the third rail
                // failed, because they used the announced address without a listener.
                assertEquals(1, ((FrameSender.Railed) made.sender()).rails());
                assertTrue(made.sender().toString().contains("(2 streams)"), made.sender().toString());
            }
        }
    }

    @Test
    void aConnectionThatNobodyExpectsIsRefusedOnceAndNotRailByRail() {
        try (SocketNetwork network = network(2, 1)) {
            ConnectionKey key = Connected.newKey();
            Listener listener = network.listen();
            listener.expect(key).close();
            Pending<FrameSender> connecting = network.connect(listener.address(), key);
            Pending<?> other = listener.expect(Connected.newKey());
            ConnectionException refusal = Connected.failureOf(() -> {
                other.poll();
                connecting.poll();
            });
            assertTrue(refusal.getMessage().contains("the key is taken"), refusal.getMessage());
        }
    }

    /** If a client's connection is reset before the listener answers, the client may connect again. */
    @Test
    void whoBreaksOffBeforeItIsAnsweredIsExpectedAgain() throws IOException {
        try (SocketNetwork network = network(1, 1); Listener listener = network.listen()) {
            ConnectionKey key = Connected.newKey();
            SocketAccept accepting = (SocketAccept) listener.expect(key);
            Pending<?> other = listener.expect(Connected.newKey());
            InetSocketAddress address = AddressFormat.SOCKET.decode(listener.address());
            int port;
            try (Socket client = new Socket(address.getAddress(), address.getPort())) {
                port = client.getLocalPort();
                client.getOutputStream()
                        .write(new StreamHello(64 << 10, 1, 0, 1, 0, 1, 16)
                                .encode(AddressFormat.secret(listener.address()), key, null)
                                .array());
                while (!accepting.isComplete()) {
                    other.poll();
                }
                client.setSoLinger(true, 0); // this makes the close reset the connection
            }
            String end = ":%04X 01 ".formatted(port);
            while (Files.readString(Path.of("/proc/net/tcp")).contains(end)) {
                Thread.onSpinWait();
            }
            assertNull(accepting.poll(), "there is nobody");
            Pending<FrameSender> connecting = network.connect(listener.address(), key);
            Connected.await(listener, connecting, accepting);
        }
    }

    @Test
    void whoDoesNotKnowTheSecretIsToldNoAddresses() throws IOException {
        try (SocketNetwork network = network(2, 1); Listener listener = network.listen()) {
            Pending<?> expected = listener.expect(Connected.newKey());
            InetSocketAddress address = AddressFormat.SOCKET.decode(listener.address());
            try (Socket stranger = new Socket(address.getAddress(), address.getPort())) {
                stranger.getOutputStream()
                        .write(new StreamHello(1, 0, 0, 0, 0, 1, 1).encode(new byte[16], Connected.newKey(), null)
                                .array());
                while (((SocketListener) listener).dropped() == 0) {
                    expected.poll();
                }
                byte[] answer = stranger.getInputStream().readAllBytes();
                assertEquals(HandshakeReply.BYTES, answer.length);
                assertEquals(HandshakeReply.WRONG_SECRET,
                        HandshakeReply.decode(ByteBuffer.wrap(answer).order(java.nio.ByteOrder.LITTLE_ENDIAN)));
            }
        }
    }

    @Test
    void aListenerThatTellsNoAddressesIsReported() throws IOException {
        try (ServerSocket server = new ServerSocket(0, 10, InetAddress.getLoopbackAddress());
                SocketNetwork network = network(2, 1)) {
            byte[] address =
                    AddressFormat.SOCKET.encode((InetSocketAddress) server.getLocalSocketAddress(), new byte[16], 2);
            Pending<FrameSender> connecting = network.connect(address, Connected.newKey());
            try (Socket accepted = server.accept()) {
                accepted.getOutputStream().write(HandshakeReply.ACCEPTED.encode(StreamHello.FORMAT).array());
                accepted.getOutputStream().write(new byte[AddressFormat.LIST_BYTES - 1]);
                accepted.shutdownOutput();
                ConnectionException end = Connected.failureOf(connecting::poll);
                assertTrue(end.getMessage().contains("of " + AddressFormat.LIST_BYTES + " bytes of its addresses"),
                        end.getMessage());
            }
        }
    }
}
