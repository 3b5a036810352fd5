package org.millrace.net.shm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.SocketException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.file.FileName;
import org.millrace.file.PrivateFile;
import org.millrace.net.Connected;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.Pending;
import org.millrace.net.connection.HandshakeReply;
import org.millrace.net.shm.ShmNetwork.ShmAddress;

/**
 * Strangers and damaged peers at a listener's socket. The listener answers or refuses each client, without effect on
 * other clients.
 */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ShmHandshakeTest {

    @TempDir
    private Path directory;
    private ShmNetwork network;
    private Listener listener;
    private ConnectionKey key;
    private Pending<FrameReceiver> expected;

    @BeforeEach
    void listen() {
        ShmOptions usual = ShmOptions.defaults();
        network = new ShmNetwork(new ShmOptions(directory, usual.ringBytes(), usual.pieceBytes(),
                usual.framesInFlight(), Duration.ofSeconds(30), Duration.ofMillis(50), usual.singleCopy(), true));
        listener = network.listen();
        key = Connected.newKey();
        expected = listener.expect(key);
    }

    @AfterEach
    void theListenerStillServesItsPeers() {
        try (Connected ends = Connected.make(network, listener, Connected.newKey())) {
            ends.sender().offer(new FrameHeader(), null, 0);
            ends.nextHeader();
        }
        network.close();
    }

    private SocketChannel say(ByteBuffer says) throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            SocketChannel channel = SocketChannel.open(StandardProtocolFamily.UNIX);
            channel.connect(UnixDomainSocketAddress
                    .of(files.filter(file -> file.toString().endsWith(".sock")).findFirst().orElseThrow()));
            channel.write(says);
            channel.configureBlocking(false);
            return channel;
        }
    }

    private byte[] secret() {
        return ShmAddress.decode(listener.address()).secret();
    }

    private ByteBuffer hello(String ring) {
        return new RingHello(1 << 20, ring).encode(secret(), key);
    }

    /**
     * Polls an expected connection until the client is answered. Returns null if the connection is closed without an
     * answer.
     */
    private static HandshakeReply answer(SocketChannel client, Runnable poll) throws IOException {
        ByteBuffer answer = ByteBuffer.allocate(HandshakeReply.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        int read = 0;
        while (answer.hasRemaining() && read >= 0) {
            poll.run();
            try {
                read = client.read(answer);
            } catch (SocketException hungUpUnheard) {
                return null;
            }
        }
        return read < 0 ? null : HandshakeReply.decode(answer);
    }

    private void nobodyCame() {
        assertNull(expected.poll());
    }

    @Test
    void oneWhoSpeaksAnotherProtocolIsHungUpOn() throws IOException {
        assertNull(answer(say(ByteBuffer.wrap("GET / HTTP/1.1\r\n".repeat(20).getBytes(StandardCharsets.US_ASCII))),
                this::nobodyCame));
    }

    @Test
    void oneWhoSaysNothingIsHungUpOnInTime() throws IOException {
        assertNull(answer(say(ByteBuffer.allocate(0)), this::nobodyCame));
        assertNull(answer(say(ByteBuffer.wrap(RingHello.FORMAT.magic().getBytes(StandardCharsets.US_ASCII))),
                this::nobodyCame));
    }

    @Test
    void aHelloOfAnotherVersionIsToldSo() throws IOException {
        assertEquals(HandshakeReply.OTHER_VERSION,
                answer(say(hello("x").putInt(RingHello.FORMAT.magic().length(), 77)), this::nobodyCame));
    }

    @Test
    void aWrongSecretIsRefused() throws IOException {
        assertEquals(HandshakeReply.WRONG_SECRET,
                answer(say(new RingHello(1 << 20, "x").encode(new byte[16], key)), this::nobodyCame));
    }

    @Test
    void aKeyThatNobodyExpectsInTimeIsRefused() throws IOException {
        ByteBuffer unknown = new RingHello(1 << 20, "x").encode(secret(), Connected.newKey());
        assertEquals(HandshakeReply.UNKNOWN_KEY, answer(say(unknown), this::nobodyCame));
    }

    @Test
    void aClientThatLeavesMakesRoomForAnother() throws IOException {
        say(hello("x")).close();
        assertNull(expected.poll());
        Pending<FrameSender> connecting = network.connect(listener.address(), key);
        Connected made = Connected.await(listener, connecting, expected);
        assertNull(made.receiver().poll());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"../../etc/passwd", "millrace-0000000000000000-1-1-1.ring",
                    "millrace-0000000000000000-1-1-1.sock", "", "/etc/passwd"})
    void aRingThatCanBeNoneIsRefused(String ring) throws IOException {
        SocketChannel client = say(hello(ring));
        assertInstanceOf(ShmUnavailableException.class, Connected.failureOf(() -> expected.poll()));
        assertEquals(HandshakeReply.NO_RING, answer(client, () -> {}));
    }

    /** If the listener cannot open a sealed ring, the client continues its attempt with a ring in the directory. */
    @Test
    void aSealedRingThatCannotBeOpenedIsAskedForInTheDirectory() throws IOException {
        SocketChannel client = say(hello(FileName.sealed(1, 0).toString()));
        assertEquals(HandshakeReply.NO_SEALED_RING, answer(client, this::nobodyCame));
        Pending<FrameSender> connecting = network.connect(listener.address(), key);
        Connected made = Connected.await(listener, connecting, expected);
        assertNull(made.receiver().poll());
    }

    @Test
    void aRingOfAnotherLengthThanSaidOrWithoutAHeaderIsRefused() throws IOException {
        String name = FileName.ours(1, FileName.RING).toString();
        Path file = Files.write(directory.resolve(name), new byte[5000]);
        say(hello(name));
        assertTrue(Connected.failureOf(() -> expected.poll()).getMessage().contains("5000 bytes"));
        try (FileChannel longer = FileChannel.open(file, StandardOpenOption.WRITE)) {
            PrivateFile.extend(longer, RingLayout.fileBytes(1 << 20));
        }
        key = Connected.newKey();
        Pending<FrameReceiver> second = listener.expect(key);
        say(hello(name));
        assertTrue(Connected.failureOf(() -> second.poll()).getMessage().contains("magic"));
    }
}
