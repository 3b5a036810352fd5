package org.millrace.net.connection;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Detection of silent streams from the operating system's statistics. Loopback has many addresses, and the test watches
 * a stream between two of them.
 */
class TcpStreamTest {

    private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

    private final Arena arena = Arena.ofConfined();
    private final TcpInfo info = new TcpInfo(arena);
    private SocketChannel client;
    private SocketChannel server;

    @BeforeEach
    void connect() throws IOException {
        try (ServerSocketChannel listener = ServerSocketChannel.open().bind(new InetSocketAddress("127.0.0.1", 0))) {
            client = SocketChannel.open().bind(new InetSocketAddress("127.0.0.2", 0));
            client.connect(listener.getLocalAddress());
            server = listener.accept();
        }
    }

    @AfterEach
    void close() throws IOException {
        client.close();
        server.close();
        arena.close();
    }

    private TcpStream watched(SocketChannel channel) throws IOException {
        TcpStreams.watch(channel, "a peer", null);
        InetSocketAddress local = (InetSocketAddress) channel.getLocalAddress();
        return TcpStreams.open().stream().filter(stream -> stream.local.equals(local)).findFirst().orElseThrow();
    }

    @Test
    void theKernelIsAskedForEachStream() throws IOException {
        TcpStream one = watched(client);
        TcpStream other = watched(server);
        info.find(List.of(one, other));
        assertTrue(one.descriptor >= 0 && other.descriptor >= 0 && one.descriptor != other.descriptor);
        assertTrue(info.read(other.descriptor));
        int before = info.segmentsIn();
        client.write(ByteBuffer.wrap(new byte[] {1}));
        server.read(ByteBuffer.allocate(1));
        assertTrue(info.read(other.descriptor));
        assertNotEquals(before, info.segmentsIn());
        assertEquals(0, info.askedNanos());
        assertFalse(info.sendsAgain());
    }

    @Test
    void oneThatWasLostIsNoLongerAsked() throws IOException {
        TcpStream one = watched(client);
        info.find(List.of(one));
        server.setOption(StandardSocketOptions.SO_LINGER, 0).close(); // this close resets the connection
        client.configureBlocking(true);
        try {
            client.read(ByteBuffer.allocate(1));
        } catch (IOException reset) {
            assertFalse(info.read(one.descriptor));
        }
        client.close();
        assertFalse(TcpStreams.open().contains(one));
    }

    @Test
    void whatStaysOnOneAddressIsNotWatched() throws IOException {
        try (ServerSocketChannel listener = ServerSocketChannel.open().bind(new InetSocketAddress("127.0.0.1", 0));
                SocketChannel own = SocketChannel.open(listener.getLocalAddress())) {
            TcpStreams.watch(own, "a peer", null);
            InetSocketAddress local = (InetSocketAddress) own.getLocalAddress();
            assertTrue(TcpStreams.open().stream().noneMatch(stream -> stream.local.equals(local)));
        }
    }

    /**
     * @param values pairs of a field's offset and value. All other fields are 0, except the count of received segments
     */
    private void says(int... values) {
        info.bytes.fill((byte) 0);
        info.bytes.set(ValueLayout.JAVA_INT, 140, 7);
        for (int i = 0; i < values.length; i += 2) {
            if (values[i] < 8) {
                info.bytes.set(ValueLayout.JAVA_BYTE, values[i], (byte) values[i + 1]);
            } else {
                info.bytes.set(ValueLayout.JAVA_INT, values[i], values[i + 1]);
            }
        }
    }

    private TcpStream stream() throws IOException {
        TcpStream stream = watched(client);
        says(140, 6);
        stream.update(info, SECOND);
        return stream;
    }

    private static final int RETRANSMITS = 2;
    private static final int PROBES = 3;
    private static final int UNACKED = 24;
    private static final int LAST_DATA = 52;
    private static final int LAST_ACK = 56;
    private static final int BYTES_ACKED = 120;
    private static final int SEGMENTS = 140;
    private static final int NOT_SENT = 144;
    private static final int DATA_SEGMENTS = 152;

    @Test
    void nothingComes() throws IOException {
        TcpStream stream = stream();
        says();
        for (int second = 0; second <= 9; second++) {
            stream.update(info, SECOND);
            assertFalse(stream.isSilent());
        }
        stream.update(info, SECOND);
        assertTrue(stream.isSilent());
        says(SEGMENTS, 8);
        stream.update(info, SECOND);
        assertFalse(stream.isSilent());
    }

    /**
     * Both ends have data in flight, and only the direction to the peer is cut. The peer's data arrives, but this end's
     * data does not.
     */
    @Test
    void whatIsSentOrAskedGetsNoAnswer() throws IOException {
        TcpStream stream = stream();
        for (int second = 0; second <= 10; second++) {
            assertFalse(stream.isSilent());
            // The peer's retransmissions acknowledge nothing new.
            says(RETRANSMITS, 5, UNACKED, 1, LAST_ACK, 10, LAST_DATA, 10, SEGMENTS, 8 + second, DATA_SEGMENTS,
                    3 + second);
            stream.update(info, SECOND);
        }
        assertTrue(stream.isSilent());
        says(RETRANSMITS, 5, UNACKED, 1, BYTES_ACKED, 1, SEGMENTS, 18, DATA_SEGMENTS, 13);
        stream.update(info, SECOND);
        assertFalse(stream.isSilent());
        says(PROBES, 2, LAST_ACK, 10_000, LAST_DATA, 10_000, SEGMENTS, 8);
        stream.update(info, SECOND);
        assertTrue(stream.isSilent());
        says(PROBES, 1, LAST_ACK, 10_000, LAST_DATA, 10_000, SEGMENTS, 9); // the only unanswered probe was just sent
        stream.update(info, SECOND);
        assertFalse(stream.isSilent());
        // The last received data is 10 s old, and new data was just sent.
        says(UNACKED, 1, LAST_ACK, 10_000, LAST_DATA, 10_000, SEGMENTS, 10);
        stream.update(info, SECOND);
        assertFalse(stream.isSilent());
    }

    /**
     * The peer's window is closed, and Linux probes the window less and less often. Only the peer's own keep-alives
     * arrive.
     */
    @Test
    void aPeerThatDoesNotReadIsNotSilent() throws IOException {
        TcpStream stream = stream();
        for (int segments = 8; segments < 40; segments++) {
            for (int second = 0; second < 5; second++) {
                says(SEGMENTS, segments, NOT_SENT, 30_000, PROBES, 2, LAST_ACK, 60_000, LAST_DATA, 60_000);
                stream.update(info, SECOND);
                assertFalse(stream.isSilent());
            }
        }
    }

    /** The peer has reduced its window. It answers retransmissions with an old acknowledgement. */
    @Test
    void aPeerThatHasNoRoomForWhatItOfferedRoomForIsNotSilent() throws IOException {
        TcpStream stream = stream();
        for (int second = 0; second < 60; second++) {
            says(RETRANSMITS, 5, UNACKED, 9, BYTES_ACKED, 1000, SEGMENTS, 8 + second / 5);
            stream.update(info, SECOND);
            assertFalse(stream.isSilent());
        }
    }

    /** An operating system that does not count segments does not show whether data has arrived. */
    @Test
    void withoutACountOfSegmentsNothingIsSaid() throws IOException {
        TcpStream stream = stream();
        for (int second = 0; second < 20; second++) {
            says(SEGMENTS, 0);
            stream.update(info, SECOND);
        }
        assertFalse(stream.isSilent());
    }
}
