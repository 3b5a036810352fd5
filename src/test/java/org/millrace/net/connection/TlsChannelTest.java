package org.millrace.net.connection;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.config.Configuration;

/** System calls of a stream under TLS. */
@Timeout(60)
class TlsChannelTest {

    private Counted fromPeer;
    private SocketChannel here;
    private SocketChannel peer;

    /** A stream that counts its reads. */
    private static final class Counted extends FilterSocketChannel {

        private int reads;

        Counted(SocketChannel stream) {
            super(stream);
        }

        @Override
        public int read(ByteBuffer to) throws IOException {
            reads++;
            return stream.read(to);
        }

        @Override
        public int write(ByteBuffer from) throws IOException {
            return stream.write(from);
        }
    }

    @BeforeEach
    void connect() throws IOException {
        TlsIdentity identity =
                TlsIdentity.of(Configuration.load(Map.of("MILLRACE_TLS", "1", "MILLRACE_SECRET", "of the test")));
        try (ServerSocketChannel listener = ServerSocketChannel.open()) {
            listener.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
            SocketChannel client = SocketChannel.open(listener.getLocalAddress());
            client.configureBlocking(false);
            peer = identity.client(client, new byte[16]);
            fromPeer = new Counted(listener.accept());
            fromPeer.configureBlocking(false);
            here = identity.server(fromPeer, new byte[16]);
        }
        assertArrayEquals(new byte[] {7}, receive(new byte[] {7}));
    }

    @AfterEach
    void close() throws IOException {
        peer.close();
        here.close();
    }

    /**
     * Sends data until everything has arrived, and returns the received data. The buffer of a read has at least one
     * byte more room than needed.
     */
    private byte[] receive(byte[] data) throws IOException {
        ByteBuffer from = ByteBuffer.wrap(data);
        ByteBuffer to = ByteBuffer.allocate(data.length + 1);
        while (to.position() < data.length) {
            peer.write(from);
            here.read(to);
        }
        peer.read(ByteBuffer.allocate(1)); // This read completes the handshake.
        byte[] received = new byte[data.length];
        to.flip().get(received);
        return received;
    }

    @Test
    void aSmallMessageCostsOneCall() throws IOException {
        for (int message = 0; message < 10; message++) {
            assertEquals(100, peer.write(ByteBuffer.allocate(100)));
            ByteBuffer to = ByteBuffer.allocate(1000);
            int before = 0;
            while (to.position() == 0) {
                before = fromPeer.reads;
                here.read(to);
            }
            assertEquals(100, to.position());
            assertEquals(1, fromPeer.reads - before, "calls that looked for more behind a message that was all");
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 16_383, 16_384, 131_072, 1_000_000})
    void allArrives(int bytes) throws IOException {
        byte[] data = new byte[bytes];
        new Random(bytes).nextBytes(data);
        assertArrayEquals(data, receive(data));
    }
}
