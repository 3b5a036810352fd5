package org.millrace.net.socket;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.millrace.net.ConnectionKey;

/** Clients that request a lost stream without the process's secret. */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ResumeTest {

    private static final int CLIENTS = 300;

    private final Reconnector reconnector;
    private final ResumeFormat.Id id = new ResumeFormat.Id(new ConnectionKey(1, 2), 3, true);
    private final StreamRecovery connection;

    ResumeTest() throws IOException {
        reconnector = Reconnector.shared(SocketOptions.defaults());
        InetSocketAddress nobody = new InetSocketAddress(InetAddress.getLoopbackAddress(), 1);
        connection = new StreamRecovery(reconnector, id, new byte[16],
                new StreamRecovery.Peer[] {new StreamRecovery.Peer(null, nobody)});
    }

    @AfterEach
    void close() {
        connection.close(false);
        reconnector.close();
    }

    /**
     * Sends a request, and answers the challenge with a proof. {@code bit} is the changed bit of the proof, -1 for
     * none.
     */
    private byte[] answer(ByteBuffer question, int bit) throws IOException {
        try (Socket client = new Socket(InetAddress.getLoopbackAddress(), reconnector.port())) {
            OutputStream out = client.getOutputStream();
            out.write(question.array());
            byte[] challenge = client.getInputStream().readNBytes(ResumeFormat.CHALLENGE_BYTES);
            byte[] proof = ResumeFormat.proof(reconnector.secret(), question, ByteBuffer.wrap(challenge)).array();
            if (bit >= 0) {
                proof[bit / 8] ^= (byte) (1 << bit % 8);
            }
            out.write(proof);
            return client.getInputStream().readNBytes(4);
        }
    }

    @Test
    void noneOfThemIsAnsweredOrAdmitted() throws IOException {
        Random random = new Random(1);
        for (int client = 0; client < CLIENTS; client++) {
            byte[] said = answer(ResumeFormat.question(id, 0, 1), random.nextInt(ResumeFormat.HASH_BYTES * 8));
            assertEquals(0, said.length);
            assertFalse(connection.hasNews());
        }
        assertArrayEquals(new byte[] {ResumeFormat.KNOWN, 0, 0, 0}, answer(ResumeFormat.question(id, 0, 1), -1));
        while (!connection.hasNews()) {
            Thread.onSpinWait();
        }
    }

    /**
     * The answer to a request for an unknown connection or stream is "gone". A request with an old epoch is answered,
     * but its stream is not used.
     */
    @Test
    void whatIsNotKnownIsGone() throws IOException {
        byte[] gone = {ResumeFormat.GONE, 0, 0, 0};
        assertArrayEquals(gone, answer(ResumeFormat.question(id.other(), 0, 1), -1));
        assertArrayEquals(gone, answer(ResumeFormat.question(id, 1, 1), -1));
        assertArrayEquals(new byte[] {ResumeFormat.KNOWN, 0, 0, 0}, answer(ResumeFormat.question(id, 0, 0), -1));
        assertFalse(connection.hasNews());
        assertTrue(connection.take(0) == null);
    }

    /**
     * A cut of the network may lose messages of a handshake. The client then starts the handshake again before its
     * deadline.
     */
    @Test
    void aHandshakeThatIsNotAnsweredIsBegunAnewBeforeTheDeadline() throws IOException {
        Reconnector impatient =
                Reconnector.shared(SocketOptions.defaults().withReconnectDeadline(Duration.ofSeconds(6)));
        try (ServerSocket other = new ServerSocket(0, 10, InetAddress.getLoopbackAddress())) {
            StreamRecovery lost = new StreamRecovery(impatient, new ResumeFormat.Id(new ConnectionKey(3, 4), 5, false),
                    new byte[16], new StreamRecovery.Peer[] {
                            new StreamRecovery.Peer(null, (InetSocketAddress) other.getLocalSocketAddress())});
            lost.lost(0, true);
            try (Socket silent = other.accept(); Socket again = other.accept()) {
                assertNotEquals(silent.getPort(), again.getPort());
                assertNull(lost.end());
            } finally {
                lost.close(false);
            }
        } finally {
            impatient.close();
        }
    }
}
