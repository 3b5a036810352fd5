package org.millrace.net.socket;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.net.Connected;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.PeerClosedException;
import org.millrace.net.Pending;
import org.millrace.net.connection.HandshakeReply;
import org.millrace.net.connection.HelloFormat;

/** A peer that knows the secret, and then sends data that no Millrace sender would send. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class HostileFramesTest {

    private final SocketNetwork network = new SocketNetwork(SocketOptions.defaults().withAddresses("lo", null, null));
    private final Listener listener = network.listen();
    private RawPeer peer;
    private FrameReceiver receiver;

    @BeforeEach
    void connect() throws IOException {
        peer = new RawPeer(listener, 1, 1000);
        receiver = peer.receiver();
    }

    @AfterEach
    void close() throws IOException {
        peer.close();
        network.close();
    }

    /** Replaces bytes at an offset of a valid header. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"0|1347375956|begins with 0x3146524d, but 0x504f5354",
                    "4|7|type and flags are 2 to 6, but 0x00000007", "4|65537|but 0x00010001 came",
                    "12|-1|0 to 1073741824 bytes, but a header states -",
                    "8|1073741825|but a header states 1073741825"})
    void aHeaderThatIsNoneEndsTheConnection(int offset, int value, String problem) throws IOException {
        ByteBuffer bytes = RawPeer.header(0, 0);
        bytes.putInt(offset, value);
        peer.send(0, bytes.array());
        ConnectionException end = Connected.failureOf(receiver::poll);
        assertTrue(end.getMessage().contains(problem), end.getMessage());
        assertEquals(end, Connected.failureOf(receiver::progress));
        // The receiver has closed the stream at once, so the peer sees the end of the stream or a reset.
        try {
            assertEquals(-1, peer.stream(0).getInputStream().read());
        } catch (IOException reset) {
            assertTrue(reset.getMessage().contains("reset"), reset.getMessage());
        }
    }

    @Test
    void headersThatComeByteByByteAreUnderstood() throws IOException {
        for (byte each : RawPeer.header(0, 0).array()) {
            assertNull(receiver.poll());
            peer.send(0, new byte[] {each});
        }
        while (receiver.poll() == null) {
            Thread.onSpinWait();
        }
        receiver.accept(null, 0);
        assertEquals(1, receiver.framesCompleted());
    }

    @Test
    void anEndWithinAHeaderIsALoss() throws IOException {
        peer.send(0, java.util.Arrays.copyOf(RawPeer.header(0, 0).array(), 79));
        peer.close();
        assertLost(Connected.failureOf(receiver::poll));
    }

    @Test
    void anEndWithinAPayloadIsALoss() throws IOException {
        try (Arena arena = Arena.ofShared()) {
            peer.send(0, RawPeer.header(0, 100_000).array());
            peer.send(0, new byte[99_999]);
            peer.close();
            while (receiver.poll() == null) {
                Thread.onSpinWait();
            }
            receiver.accept(network.register(arena.allocate(100_000)), 0);
            assertLost(Connected.failureOf(receiver::progress));
            assertEquals(0, receiver.framesCompleted());
        }
    }

    private static void assertLost(ConnectionException end) {
        assertFalse(end instanceof PeerClosedException, end.getMessage());
        assertTrue(end.getMessage().contains("lost"), end.getMessage());
    }

    @Test
    void aReceiverThatSendsFramesEndsTheConnectionOfItsSender() throws IOException {
        ConnectionKey key = Connected.newKey();
        try (java.net.ServerSocket server =
                new java.net.ServerSocket(0, 1, java.net.InetAddress.getLoopbackAddress())) {
            Pending<FrameSender> connecting = network.connect(
                    AddressFormat.SOCKET.encode((InetSocketAddress) server.getLocalSocketAddress(), new byte[16], 1),
                    key);
            try (Socket accepted = server.accept()) {
                FrameSender sender = null;
                accepted.getOutputStream()
                        .write(HandshakeReply.ACCEPTED.encode(new HelloFormat("MILLRACE", 2, 72)).array());
                accepted.getOutputStream().write(StreamHello.encode(null).array());
                while (sender == null) {
                    sender = connecting.poll();
                }
                accepted.getOutputStream().write(RawPeer.header(0, 0).array());
                ConnectionException end = Connected.failureOf(sender::progress);
                assertTrue(end.getMessage().contains("an acknowledgement of data that was never sent"),
                        end.getMessage());
            }
        }
    }
}
