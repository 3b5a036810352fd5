package org.millrace.net.connection;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.Random;
import java.util.function.IntPredicate;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLParameters;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A stream under TLS over a network that delivers challenge, records and alerts in segments of any length. */
@Timeout(120)
class TlsSplitTest {

    private static final int DATA = 4_000;
    /** Distance between two positions at which a read ends, in bytes. */
    private static final int STRIDE = 32;

    private final byte[] shared = new byte[16];
    private final byte[] secret = {1, 2, 3};
    private final byte[] data = new byte[DATA];
    private TlsIdentity identity;
    private SocketChannel unconnected;
    private Direction up;
    private Direction down;
    private SocketChannel client;
    private SocketChannel server;

    @BeforeEach
    void open() throws Exception {
        identity = TlsIdentity.ofSecret("of the test");
        unconnected = SocketChannel.open();
        new Random(1).nextBytes(data);
    }

    @AfterEach
    void close() throws IOException {
        unconnected.close();
    }

    /** Bytes in flight in one direction. A read ends at each boundary, and the following read returns 0 bytes. */
    private static final class Direction {

        private final ArrayDeque<Byte> bytes = new ArrayDeque<>();
        private final IntPredicate isBoundary;
        private int delivered;
        private boolean pauses;

        Direction(IntPredicate isBoundary) {
            this.isBoundary = isBoundary;
        }

        int read(ByteBuffer to) {
            int begin = to.position();
            while (!pauses && to.hasRemaining() && !bytes.isEmpty()) {
                to.put(bytes.remove());
                pauses = isBoundary.test(++delivered);
            }
            pauses &= to.position() > begin;
            return to.position() - begin;
        }

        int write(ByteBuffer from) {
            int count = from.remaining();
            while (from.hasRemaining()) {
                bytes.add(from.get());
            }
            return count;
        }
    }

    private SocketChannel end(boolean isClient, Direction in, Direction out, String... groups) {
        SocketChannel stream = new FilterSocketChannel(unconnected) {
            @Override
            public int read(ByteBuffer to) {
                return in.read(to);
            }

            @Override
            public int write(ByteBuffer from) {
                return out.write(from);
            }
        };
        return new TlsChannel(stream, new ChallengeResponse(stream, isClient, secret, shared), () -> {
            SSLEngine engine = identity.engine(isClient);
            SSLParameters parameters = engine.getSSLParameters();
            parameters.setNamedGroups(groups);
            engine.setSSLParameters(parameters);
            return engine;
        });
    }

    /** Completes the handshake, and sends data in both directions. */
    private void exchange(IntPredicate isBoundary, String... groups) throws IOException {
        up = new Direction(isBoundary);
        down = new Direction(isBoundary);
        client = end(true, down, up, groups);
        server = end(false, up, down, groups);
        ByteBuffer fromClient = ByteBuffer.wrap(data);
        ByteBuffer fromServer = ByteBuffer.wrap(data);
        ByteBuffer atClient = ByteBuffer.allocate(DATA);
        ByteBuffer atServer = ByteBuffer.allocate(DATA);
        while (atClient.hasRemaining() || atServer.hasRemaining()) {
            client.write(fromClient);
            server.read(atServer);
            server.write(fromServer);
            client.read(atClient);
        }
        assertArrayEquals(data, atClient.array());
        assertArrayEquals(data, atServer.array());
    }

    /** The key-exchange group determines the length of the TLS hellos. Later Java releases may use longer keys. */
    @ParameterizedTest
    @Tag("slow")
    @ValueSource(strings = {"x25519", "ffdhe4096"})
    void everyPositionOfBothDirectionsMayEndASegment(String groups) throws IOException {
        splits(groups);
    }

    @ParameterizedTest
    @Tag("nightly")
    @ValueSource(strings = {"secp521r1", "x25519,ffdhe8192"})
    void soItIsWithOtherGroups(String groups) throws IOException {
        splits(groups);
    }

    private void splits(String groups) throws IOException {
        String[] names = groups.split(",");
        exchange(at -> false, names);
        exchange(at -> true, names);
        for (int offset = 0; offset < STRIDE; offset++) {
            int first = offset;
            exchange(at -> at % STRIDE == first, names);
        }
        assertTrue(up.delivered > 4_096 && down.delivered > 4_096, "the first 4 KiB are split");
    }

    @Test
    void anAlertInPartsIsUnderstood() throws IOException {
        exchange(at -> true, "x25519");
        assertEquals(DATA, client.write(ByteBuffer.wrap(data)));
        up.bytes.addLast((byte) (up.bytes.removeLast() ^ 1));
        ByteBuffer to = ByteBuffer.allocate(DATA);
        assertThrows(SSLException.class, () -> {
            while (true) {
                server.read(to);
            }
        });
        String message = assertThrows(SSLException.class, () -> {
            while (true) {
                client.read(to.clear());
            }
        }).getMessage();
        assertTrue(message.contains("bad_record_mac"), message);
    }
}
