package org.millrace.net.socket;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.net.Connected;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Pending;
import org.millrace.net.connection.HandshakeReply;
import org.millrace.net.connection.HelloFormat;

/** If the network is cut during a handshake, the last message of either side may be lost. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class LostAnswerTest {

    private final ConnectionKey key = Connected.newKey();
    private Reconnector reconnector;
    private SocketNetwork network;
    private SocketListener listener;
    private SocketAccept accepting;

    @BeforeEach
    void open() throws IOException {
        open(SocketOptions.defaults());
    }

    private void open(SocketOptions options) throws IOException {
        network = new SocketNetwork(options.withRails(SocketNetworkRailsTest.loopbacks(1)));
        SocketOptions same = options.withRails(SocketNetworkRailsTest.loopbacks(1));
        reconnector = same.reconnectDeadline().isZero() ? null : Reconnector.shared(same);
        listener = (SocketListener) network.listen();
        accepting = (SocketAccept) listener.expect(key);
    }

    @AfterEach
    void close() {
        network.close();
        if (reconnector != null) {
            reconnector.close();
        }
    }

    private Socket client(byte[] hello) throws IOException {
        InetSocketAddress address = AddressFormat.SOCKET.decode(listener.address());
        Socket client = new Socket(address.getAddress(), address.getPort());
        client.getOutputStream().write(hello);
        return client;
    }

    private byte[] hello(long attempt) {
        return new StreamHello(64 << 10, attempt, 0, 1, 0, 1, 16)
                .encode(AddressFormat.secret(listener.address()), key, reconnector)
                .array();
    }

    /** Returns a client that has sent the given hello. The listener has already sent its answer to this client. */
    private Socket answered(byte[] hello) throws IOException {
        Socket client = client(hello);
        while (!accepting.isAnswered()) {
            assertNull(accepting.poll());
        }
        return client;
    }

    private static void reset(Socket client) throws IOException {
        client.setSoLinger(true, 0);
        client.close();
    }

    private void assertIsMade() {
        Pending<FrameSender> connecting = network.connect(listener.address(), key);
        Connected made = Connected.await(listener, connecting, accepting);
        FrameHeader header = new FrameHeader();
        header.word(0, 77);
        made.sender().offer(header, null, 0);
        assertEquals(77, made.nextHeader().word(0));
    }

    /**
     * The client has not received the answer. The listener may or may not detect the end of the client's stream; the
     * test covers both cases.
     */
    @ParameterizedTest
    @CsvSource({"true, 60s", "false, 60s", "true, 0s", "false, 0s"})
    void whoLostItsAnswerBeginsAnew(boolean isSeen, String deadline) throws IOException {
        close();
        open(SocketOptions.defaults().withReconnectDeadline(Duration.parse("PT" + deadline)));
        try (Socket lost = answered(hello(1))) {
            if (isSeen) {
                reset(lost);
            }
            assertIsMade();
        }
    }

    /**
     * The client has received the answer and keeps the connection, but its confirmation is lost. The listener therefore
     * asks whether the client has the connection. The client does not know the connection yet when the first questions
     * arrive.
     */
    @Test
    void whoseConfirmationIsLostIsAsked() throws IOException {
        try (ServerSocket port = new ServerSocket(0, 10, InetAddress.getLoopbackAddress())) {
            port.setSoTimeout(1);
            byte[] hello = hello(5);
            StreamHello.resumeIn(ByteBuffer.wrap(hello)).putInt(HelloFormat.SECRET_BYTES, port.getLocalPort());
            reset(answered(hello));
            for (int said : new int[] {ResumeFormat.GONE, ResumeFormat.GONE, ResumeFormat.KNOWN}) {
                assertNull(accepting.poll());
                answerTo(port, said);
            }
            while (accepting.poll() == null) {
                Thread.onSpinWait();
            }
        }
    }

    /** Waits until the listener requests the stream from the client's port. Then replies as a client's process does. */
    private void answerTo(ServerSocket port, int said) throws IOException {
        Socket asks = null;
        while (asks == null) {
            assertNull(accepting.poll());
            try {
                asks = port.accept();
            } catch (SocketTimeoutException notYet) {
                // a thread of the listener's network will request the stream later
            }
        }
        try (Socket open = asks) {
            ByteBuffer question = ByteBuffer.wrap(open.getInputStream().readNBytes(ResumeFormat.QUESTION_BYTES))
                    .order(ByteOrder.LITTLE_ENDIAN);
            assertEquals(new ResumeFormat.Id(key, 5, false), ResumeFormat.asked(question));
            ByteBuffer challenge = ResumeFormat.newChallenge();
            open.getOutputStream().write(challenge.array());
            open.getInputStream().readNBytes(ResumeFormat.HASH_BYTES);
            open.getOutputStream().write(ResumeFormat.answer(said, reconnector.secret(), question, challenge).array());
            open.getInputStream().read();
        }
    }

    /**
     * If a client requests a new stream for its connection, it has received the listener's answer. The listener
     * completes the connection when the client has the new stream.
     */
    @Test
    void whoAsksForItsStreamKnowsThatItIsAccepted() throws IOException {
        try (Socket lost = answered(hello(5));
                Socket again = new Socket(InetAddress.getLoopbackAddress(), reconnector.port())) {
            assertNull(accepting.poll());
            ByteBuffer question = ResumeFormat.question(new ResumeFormat.Id(key, 5, true), 0, 1);
            again.getOutputStream().write(question.array());
            byte[] challenge = again.getInputStream().readNBytes(ResumeFormat.CHALLENGE_BYTES);
            again.getOutputStream()
                    .write(ResumeFormat.proof(reconnector.secret(), question, ByteBuffer.wrap(challenge)).array());
            FrameReceiver receiver = null;
            while (receiver == null) {
                receiver = accepting.poll();
            }
            assertTrue(lost.isConnected());
            again.getInputStream().readNBytes(ResumeFormat.ANSWER_BYTES);
            // A thread of the network gives the stream to the receiver, possibly after the first pass of the receiver.
            while (again.getInputStream().available() < ResumeFormat.ANSWER_BYTES) {
                receiver.progress();
            }
            byte[] said = again.getInputStream().readNBytes(ResumeFormat.ANSWER_BYTES);
            assertEquals(ResumeFormat.RESUMED, said[0]);
        }
    }

    @Test
    void anotherProcessIsRefusedMeanwhile() throws IOException {
        try (Socket first = answered(hello(1))) {
            byte[] hello = hello(2);
            StreamHello.resumeIn(ByteBuffer.wrap(hello)).put(0, (byte) ~hello[80]);
            Socket other = client(hello);
            while (listener.dropped() == 0) {
                assertNull(accepting.poll());
            }
            byte[] said = other.getInputStream().readAllBytes();
            assertEquals(HandshakeReply.KEY_TAKEN,
                    HandshakeReply.decode(ByteBuffer.wrap(said).order(ByteOrder.LITTLE_ENDIAN)));
            first.getOutputStream().write(HandshakeReply.ACCEPTED.encode(StreamHello.FORMAT).array());
            while (accepting.poll() == null) {
                Thread.onSpinWait();
            }
        }
    }

    /**
     * The listener rejects any reply of a client except the confirmation. It then expects the client to connect again.
     */
    @Test
    void whoSaysSomethingElseIsExpectedAgain() throws IOException {
        try (Socket client = answered(hello(1))) {
            client.getOutputStream().write(HandshakeReply.MALFORMED.encode(StreamHello.FORMAT).array());
            while (accepting.isAnswered()) {
                assertNull(accepting.poll());
            }
            assertIsMade();
        }
    }
}
