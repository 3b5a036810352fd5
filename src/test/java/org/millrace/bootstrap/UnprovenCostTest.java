package org.millrace.bootstrap;

import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.CommunicatorListener;
import org.millrace.config.Configuration;
import org.millrace.net.connection.UnprovenClient;

/** Clients that have not proved knowledge of the secret cost rank 0 almost nothing. */
@Timeout(120)
class UnprovenCostTest {

    private static final int CLIENTS = 200;

    @AfterEach
    void allHaveLeft() {
        Ranks.awaitNoThreadLeft();
    }

    /** Connects, sends the given bytes, and stays connected. */
    private static Socket come(int port, byte[] words) throws IOException {
        Socket socket = new Socket(InetAddress.getLoopbackAddress(), port);
        socket.getOutputStream().write(words);
        return socket;
    }

    /**
     * Returns when rank 0 has handled all earlier clients. To detect this moment, connects one more client, which rank
     * 0 refuses. Rank 0 accepts connections in order.
     */
    private static void awaitAccepted(int port) throws IOException {
        try (Socket last = come(port, "GET / HTTP/1.1\r\n\r\n".repeat(8).getBytes(StandardCharsets.US_ASCII))) {
            while (last.getInputStream().read() >= 0) {
                // an answer of rank 0 is ignored
            }
        } catch (IOException reset) {
            // rank 0 has closed the connection before it read all bytes
        }
    }

    @ParameterizedTest
    @CsvSource({"0, SILENT", "0, HALF_OPEN", "0, CLIENT_HELLO", "1, SILENT", "1, HALF_OPEN", "1, CLIENT_HELLO"})
    void whoHasShownNothingIsGivenNothing(String tls, UnprovenClient client) throws Exception {
        int port = Ranks.freePort();
        JoinOptions options = JoinOptions.of(Configuration.load(
                Map.of("MILLRACE_TLS", tls, "MILLRACE_SECRET", "of the ranks", "MILLRACE_CONNECT_DEADLINE", "60s")),
                CommunicatorListener.STANDARD_ERROR);
        String rendezvous = "tcp:127.0.0.1:" + port;
        FutureTask<ControlPlane> zero = Ranks.async(() -> ControlPlane.join(rendezvous, 0, 2, options));
        RawRank.connect(rendezvous).close(); // a successful connection shows that rank 0 listens
        byte[] words = client.words();
        List<Socket> clients = new ArrayList<>();
        try {
            clients.add(come(port, words)); // the first client is not measured, because its connection loads classes
            awaitAccepted(port);
            Thread control = Ranks.controlThreadOfRankZero();
            long before = UnprovenClient.allocated(control);
            for (int i = 0; i < CLIENTS; i++) {
                clients.add(come(port, words));
            }
            awaitAccepted(port);
            long each = (UnprovenClient.allocated(control) - before) / CLIENTS;
            assertTrue(each > 0 && each < UnprovenClient.MAX_BYTES, "rank 0 allocates " + each + " bytes a client");
        } finally {
            try (ControlPlane one = ControlPlane.join(rendezvous, 1, 2, options);
                    ControlPlane first = Ranks.get(zero)) {
                assertNull(one.failure());
                assertNull(first.failure());
            }
            for (Socket socket : clients) {
                socket.close();
            }
        }
    }
}
