package org.millrace.net.socket;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.config.Configuration;
import org.millrace.net.Connected;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.Pending;
import org.millrace.net.Warnings;
import org.millrace.net.connection.HandshakeReply;
import org.millrace.net.connection.KeyedListener;
import org.millrace.net.connection.Relay;
import org.millrace.net.connection.TlsIdentity;

/** Strangers, competitors and lost clients are dropped. The expected connection is created nevertheless. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class SocketHandshakeTest {

    private final ConnectionKey key = Connected.newKey();
    private SocketNetwork network;
    private SocketListener listener;
    private Pending<FrameReceiver> expected;

    @BeforeEach
    void open() {
        network = network(10_000);
        listener = (SocketListener) network.listen();
        expected = listener.expect(key);
    }

    @AfterEach
    void close() {
        network.close();
    }

    private static SocketNetwork network(int deadlineMillis) {
        return new SocketNetwork(SocketOptions.defaults()
                .withStreams(2, 100_000)
                .withAddresses("lo", null, null)
                .withDeadlines(Duration.ofSeconds(20), Duration.ofMillis(deadlineMillis)));
    }

    private static byte[] hello(int version, byte[] secret, ConnectionKey forKey, long attempt, int stream) {
        return new StreamHello(100_000, attempt, stream, 2, 0, 1, 16).encode(secret, forKey, null)
                .putInt(StreamHello.FORMAT.magic().length(), version)
                .array();
    }

    private byte[] secret() {
        return AddressFormat.secret(listener.address());
    }

    private Socket say(byte[]... what) throws IOException {
        InetSocketAddress address = AddressFormat.SOCKET.decode(listener.address());
        Socket socket = new Socket(address.getAddress(), address.getPort());
        for (byte[] bytes : what) {
            socket.getOutputStream().write(bytes);
        }
        return socket;
    }

    private void untilDropped(long count) {
        while (listener.dropped() < count) {
            assertNull(expected.poll());
            Thread.onSpinWait();
        }
    }

    /** Returns the listener's answer to a client, or null if the listener closes the stream without an answer. */
    private static HandshakeReply answerTo(Socket socket) throws IOException {
        try (InputStream in = socket.getInputStream()) {
            byte[] bytes = in.readAllBytes();
            return bytes.length == 0 ? null
                    : HandshakeReply.decode(ByteBuffer.wrap(bytes).order(java.nio.ByteOrder.LITTLE_ENDIAN));
        }
    }

    /** Checks that the expected connection can still be created, and works. */
    private void assertUndisturbed() {
        assertUndisturbed(listener.address());
    }

    private void assertUndisturbed(byte[] address) {
        Pending<FrameSender> connecting = network.connect(address, key);
        Connected made = Connected.await(listener, connecting, expected);
        FrameHeader header = new FrameHeader();
        header.word(0, 77);
        made.sender().offer(header, null, 0);
        assertEquals(77, made.nextHeader().word(0));
    }

    @Test
    void anotherVersionIsToldSo() throws IOException {
        Socket socket = say(hello(99, secret(), key, 1, 0));
        untilDropped(1);
        assertEquals(HandshakeReply.OTHER_VERSION, answerTo(socket));
        assertUndisturbed();
    }

    @Test
    void aWrongSecretIsToldSo() throws IOException {
        Socket socket = say(hello(StreamHello.VERSION, new byte[16], key, 1, 0));
        untilDropped(1);
        assertEquals(HandshakeReply.WRONG_SECRET, answerTo(socket));
        assertUndisturbed();
    }

    @ParameterizedTest
    @ValueSource(ints = {-1, 2, Integer.MAX_VALUE, Integer.MIN_VALUE})
    void aStreamNumberThatMakesNoSenseIsToldSo(int stream) throws IOException {
        Socket socket = say(hello(StreamHello.VERSION, secret(), key, 1, stream));
        untilDropped(1);
        assertEquals(HandshakeReply.MALFORMED, answerTo(socket));
        assertUndisturbed();
    }

    @ParameterizedTest
    @ValueSource(strings = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "x", "MILLRAC!", "\0\0\0\0"})
    void anotherProtocolIsDroppedWithoutAWord(String text) throws IOException {
        Socket socket = say(text.getBytes(StandardCharsets.ISO_8859_1));
        untilDropped(1);
        try {
            assertNull(answerTo(socket));
        } catch (IOException reset) {
            assertTrue(reset.getMessage().contains("reset"), reset.getMessage());
        }
        assertUndisturbed();
    }

    @Test
    void aClientThatLeavesInTheMiddleIsDropped() throws IOException {
        byte[] hello = hello(StreamHello.VERSION, secret(), key, 1, 0);
        say(java.util.Arrays.copyOf(hello, 40)).close();
        untilDropped(1);
        say().close();
        untilDropped(2);
        assertUndisturbed();
    }

    @Test
    void aClientThatLeavesBetweenItsStreamsMakesRoomForAnother() throws IOException {
        Socket socket = say(hello(StreamHello.VERSION, secret(), key, 1, 0));
        for (int i = 0; i < 1000; i++) {
            assertNull(expected.poll());
        }
        socket.close();
        untilDropped(1);
        assertUndisturbed();
    }

    @Test
    void aSecondClientOnAKeyIsRefusedWhileTheFirstConnectsAndAfter() throws IOException {
        try (Socket first = say(hello(StreamHello.VERSION, secret(), key, 1, 0))) {
            for (int i = 0; i < 1000; i++) {
                assertNull(expected.poll());
            }
            Socket second = say(hello(StreamHello.VERSION, secret(), key, 2, 1));
            untilDropped(1);
            assertEquals(HandshakeReply.KEY_TAKEN, answerTo(second));
            try (Socket rest = say(hello(StreamHello.VERSION, secret(), key, 1, 1))) {
                RawPeer.accepted(expected, first.getOutputStream());
                assertTrue(first.isConnected() && rest.isConnected());
            }
        }
        expected = listener.expect(Connected.newKey());
        Socket late = say(hello(StreamHello.VERSION, secret(), key, 3, 0));
        untilDropped(2);
        assertEquals(HandshakeReply.KEY_TAKEN, answerTo(late));
    }

    @Test
    void theSameStreamTwiceIsRefused() throws IOException {
        byte[] hello = hello(StreamHello.VERSION, secret(), key, 1, 0);
        try (Socket first = say(hello)) {
            for (int i = 0; i < 1000; i++) {
                assertNull(expected.poll());
            }
            Socket second = say(hello);
            untilDropped(1);
            assertEquals(HandshakeReply.MALFORMED, answerTo(second));
            assertTrue(first.isConnected());
        }
    }

    @Test
    void theSilentAndTheUnexpectedAreDroppedAtTheirDeadline() throws IOException {
        network.close();
        network = network(50);
        listener = (SocketListener) network.listen();
        expected = listener.expect(key);
        try (Socket silent = say();
                Socket slow = say(StreamHello.FORMAT.magic().getBytes(java.nio.charset.StandardCharsets.US_ASCII))) {
            untilDropped(2);
            assertTrue(silent.isConnected() && slow.isConnected());
        }
        Socket unexpected = say(hello(StreamHello.VERSION, secret(), Connected.newKey(), 1, 0));
        untilDropped(3);
        assertEquals(HandshakeReply.UNKNOWN_KEY, answerTo(unexpected));
        assertUndisturbed();
    }

    @Test
    void aThousandStrangersDoNotStopAPeer() throws IOException {
        for (int i = 0; i < 1000; i++) {
            say("nonsense".getBytes(StandardCharsets.US_ASCII)).close();
        }
        assertUndisturbed();
    }

    /**
     * The strangers send nothing and stay connected. The peer must not wait for the strangers' deadline of ten minutes.
     */
    @Test
    void idleStrangersMakeRoomForAPeer() throws IOException {
        network.close();
        network = network(600_000);
        listener = (SocketListener) network.listen();
        expected = listener.expect(key);
        List<Socket> idle = new ArrayList<>();
        try {
            while (idle.size() < 600) {
                idle.add(say());
            }
            assertUndisturbed();
            while (listener.dropped() < 600 - 256) {
                Pending<FrameReceiver> next = listener.expect(Connected.newKey());
                assertNull(next.poll());
                next.close();
            }
            assertEquals(-1, idle.getFirst().getInputStream().read(), "the oldest is told by its end");
        } finally {
            for (Socket socket : idle) {
                socket.close();
            }
        }
    }

    private static ConnectionException refusalOf(String answer) throws IOException {
        try (ServerSocket server = new ServerSocket(0, 10, InetAddress.getLoopbackAddress());
                SocketNetwork network = network(10_000)) {
            byte[] address =
                    AddressFormat.SOCKET.encode((InetSocketAddress) server.getLocalSocketAddress(), new byte[16], 1);
            Pending<FrameSender> connecting = network.connect(address, Connected.newKey());
            for (int stream = 0; stream < 2; stream++) {
                try (Socket socket = server.accept()) {
                    socket.getOutputStream().write(answer.getBytes(StandardCharsets.ISO_8859_1));
                    socket.shutdownOutput();
                    return Connected.failureOf(connecting::poll);
                }
            }
            throw new AssertionError("unreachable");
        }
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            HTTP/1.1 400 Bad Request | 'HTTP/1.1 400 Bad' (an HTTP server)
            SSH-2.0                  | 'SSH-2.0' (an SSH server or client)
            n                        | 'n'
            """, quoteCharacter = '"')
    void aServerOfAnotherProtocolIsNamedWithWhatItSaid(String answer, String expected) throws IOException {
        String message = refusalOf(answer).getMessage();
        assertTrue(message.contains("of 127.0.0.1 speaks another protocol: got " + expected + "; either"), message);
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            GET / HTTP/1.1 | it sent 'GET / HTTP/1.1' (an HTTP client)
            MLRC and more  | it sent 'MLRC and more' (a rank without TLS that joins a group)
            MLRCTLS1       | it sent 'MLRCTLS1' (a rank with MILLRACE_TLS=1, which must be set on all ranks or on none)
            """, quoteCharacter = '"')
    void aClientOfAnotherProtocolIsNamedInTheLog(String said, String expected) throws IOException {
        try (Warnings log = new Warnings(KeyedListener.class.getName());
                Socket socket = say(said.getBytes(StandardCharsets.ISO_8859_1))) {
            untilDropped(1);
            assertTrue(log.all().getFirst().endsWith("it speaks another protocol: " + expected), log.all()::toString);
            assertTrue(socket.isConnected());
        }
    }

    private static SocketNetwork network(boolean tls) {
        return new SocketNetwork(SocketOptions.defaults()
                .withAddresses("lo", null, null)
                .withReconnectDeadline(Duration.ZERO)
                .withTls(TlsIdentity.of(Configuration
                        .load(Map.of("MILLRACE_TLS", tls ? "1" : "0", "MILLRACE_SECRET", "a secret of the ranks")))));
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void endsThatDifferInTlsNameEachOther(boolean listens) {
        String tls = " (a rank with MILLRACE_TLS=1, which must be set on all ranks or on none)";
        try (Warnings log = new Warnings(KeyedListener.class.getName());
                SocketNetwork here = network(listens);
                SocketNetwork there = network(!listens);
                Listener at = here.listen()) {
            Pending<FrameReceiver> awaited = at.expect(key);
            Pending<FrameSender> connecting = there.connect(at.address(), key);
            String message = Connected.failureOf(() -> {
                while (connecting.poll() == null) {
                    awaited.poll();
                }
            }).getMessage();
            assertTrue(message.contains(listens ? "got 'MLRCTLS1........'" + tls : "MILLRACE_TLS, and the secret"),
                    message);
            assertTrue(log.all().getFirst().endsWith(listens ? " (a rank without TLS that sends data)" : tls),
                    log.all()::toString);
        }
    }

    /** The server may be a peer that mistakes this client for a stranger, so the client connects a few more times. */
    @Test
    void aServerThatOnlyClosesIsReportedAfterSomeAttempts() throws IOException {
        try (ServerSocketChannel server = ServerSocketChannel.open();
                SocketNetwork one = new SocketNetwork(SocketOptions.defaults()
                        .withAddresses("lo", null, null)
                        .withReconnectDeadline(Duration.ZERO))) {
            server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0)).configureBlocking(false);
            byte[] address = AddressFormat.SOCKET.encode((InetSocketAddress) server.getLocalAddress(), new byte[16], 1);
            Pending<FrameSender> connecting = one.connect(address, Connected.newKey());
            int came = 0;
            while (true) {
                try {
                    for (SocketChannel next = server.accept(); next != null; next = server.accept()) {
                        came++;
                        next.close();
                    }
                    assertNull(connecting.poll());
                } catch (ConnectionException e) {
                    assertTrue(e.getMessage().matches(".*(closed|broke) the connection during the handshake.*"),
                            e.getMessage());
                    break;
                }
            }
            assertTrue(came > 2, came + " attempts");
        }
    }

    /**
     * A listener with many strangers or without processor time may treat a peer as a stranger. A firewall between the
     * hosts may break connections for seconds.
     */
    @Test
    void aPeerThatWasTakenForAStrangerComesAgain() throws Exception {
        try (Relay relay = new Relay(AddressFormat.SOCKET.decode(listener.address()))) {
            relay.breakNext(8);
            byte[] through = AddressFormat.SOCKET.encode(relay.address(), secret(), 1);
            assertUndisturbed(through);
            assertEquals(0, relay.leftToBreak());
        }
    }

    @Test
    void aPortThatNobodyListensOnIsReported() throws IOException {
        byte[] address;
        try (ServerSocket server = new ServerSocket(0, 10, InetAddress.getLoopbackAddress())) {
            address = AddressFormat.SOCKET.encode((InetSocketAddress) server.getLocalSocketAddress(), new byte[16], 1);
        }
        String message = Connected.failureOf(() -> network.connect(address, key).poll()).getMessage();
        assertTrue(message.contains("cannot connect to port") && message.contains("Connection refused"), message);
    }

    @Test
    void aListenerThatNeverAnswersIsReportedAtTheDeadline() throws IOException {
        try (ServerSocket server = new ServerSocket(0, 10, InetAddress.getLoopbackAddress());
                SocketNetwork hasty = new SocketNetwork(
                        SocketOptions.defaults().withDeadlines(Duration.ofMillis(50), Duration.ofMillis(50)))) {
            byte[] address =
                    AddressFormat.SOCKET.encode((InetSocketAddress) server.getLocalSocketAddress(), new byte[16], 1);
            Pending<FrameSender> connecting = hasty.connect(address, key);
            String message = Connected.failureOf(connecting::poll).getMessage();
            assertTrue(message.contains("not made in PT0.05S, still waiting for the listener's answer"), message);
            assertTrue(Connected.failureOf(connecting::poll).getMessage().contains("not made in"));
        }
    }

    @Test
    void anAddressOfAnotherNetworkIsNamed() {
        byte[] address = listener.address();
        address[0] = 'p';
        String message = Connected.failureOf(() -> network.connect(address, key)).getMessage();
        assertTrue(message.contains("begins with 'pocket..'"), message);
    }

    @Test
    void noSocketIsLeft() throws IOException {
        assertUndisturbed();
        network.close();
        OpenSockets before = OpenSockets.now();
        open();
        assertEquals(2, before.opened(), "the listener's, and the port for lost streams");
        for (int round = 0; round < 20; round++) {
            network.close();
            open();
            assertUndisturbed();
            expected = listener.expect(Connected.newKey());
            say("nonsense".getBytes(StandardCharsets.US_ASCII)).close();
            untilDropped(1);
            try (Socket half = say(hello(StreamHello.VERSION, secret(), Connected.newKey(), 1, 0))) {
                assertNull(expected.poll());
                network.connect(listener.address(), Connected.newKey()).poll();
                assertTrue(half.isConnected());
            }
        }
        network.close();
        assertEquals(0, before.opened());
    }
}
