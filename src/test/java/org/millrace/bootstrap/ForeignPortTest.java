package org.millrace.bootstrap;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.CommunicatorListener;
import org.millrace.config.Configuration;

/**
 * If another program listens at rank 0's address, the error message of the connecting rank names this program. Rank 0's
 * messages name clients that are not ranks.
 */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ForeignPortTest {

    private static JoinOptions options(boolean tls, Duration deadline) {
        Map<String, String> settings = new HashMap<>(Map.of("MILLRACE_SECRET", "a secret of the ranks",
                "MILLRACE_CONNECT_DEADLINE", deadline.toMillis() + "ms"));
        settings.put("MILLRACE_TLS", tls ? "1" : "0");
        return JoinOptions.of(Configuration.load(settings), CommunicatorListener.STANDARD_ERROR);
    }

    private static FutureTask<ControlPlane> joining(int port, int rank, JoinOptions options) {
        return Ranks.async(() -> ControlPlane.join("tcp:127.0.0.1:" + port, rank, 2, options));
    }

    /** Answers each client and closes its connection. */
    private static void serve(ServerSocket server, byte[] answer) {
        Ranks.async(() -> {
            while (!server.isClosed()) {
                try (Socket socket = server.accept()) {
                    socket.getInputStream().read();
                    socket.getOutputStream().write(answer);
                    socket.shutdownOutput();
                    while (socket.getInputStream().read() >= 0) {
                        // the client's data is ignored
                    }
                } catch (IOException gone) {
                    // the client has closed the connection, or the test has ended
                }
            }
            return null;
        });
    }

    private static String failureAt(String answer, JoinOptions options) throws Exception {
        try (ServerSocket server = new ServerSocket(0, 10, InetAddress.getLoopbackAddress())) {
            serve(server, answer.getBytes(StandardCharsets.ISO_8859_1));
            String message = Ranks.failureOf(joining(server.getLocalPort(), 1, options));
            return message.replace("127.0.0.1:" + server.getLocalPort(), "ADDRESS");
        }
    }

    /** A server of another protocol. {@code name} is the server's description at the end of the error message. */
    private record Server(String answer, boolean tls, String name) {
    }

    /**
     * A rank repeats its attempts for a second, because the address may be stale. The test therefore starts one rank
     * for each server, all at the same time.
     */
    @Test
    void aServerOfAnotherProtocolIsNamed() throws Exception {
        List<Server> servers = List.of(new Server("HTTP/1.1 400 Bad Request", false, "\"HTTP/1.1 \" (an HTTP server)"),
                new Server("HTTP/1.1 400 Bad Request", true, "\"HTTP/1.1 400 Bad\" (an HTTP server)"),
                new Server("SSH-2.0-OpenSSH_9.2p1", false, "\"SSH-2.0-O\" (an SSH server or client)"),
                new Server("SSH-2.0-OpenSSH_9.2p1", true, "\"SSH-2.0-OpenSSH_\" (an SSH server or client)"),
                new Server("\25\3\3\0\2\2\50", false, "\"??????(??\" (a TLS server)"),
                new Server("unknown to us", false, "\"unknown t\""));
        List<FutureTask<String>> messages = servers.stream()
                .map(each -> Ranks.async(() -> failureAt(each.answer, options(each.tls, Ranks.TIMEOUT))))
                .toList();
        for (int i = 0; i < messages.size(); i++) {
            String message = Ranks.get(messages.get(i));
            assertTrue(message.contains("the process at ADDRESS speaks another protocol")
                    && message.endsWith(": it begins with " + servers.get(i).name), message);
        }
    }

    @Test
    void aServerThatEndsTheConnectionIsNamedByItsAddress() throws Exception {
        String message = failureAt("", options(false, Duration.ofSeconds(2)));
        assertTrue(message.contains("the process at ADDRESS ended the connection without an answer"), message);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void ranksThatDifferInTlsNameEachOther(boolean zeroHasTls) throws Exception {
        Ranks.beforeDeadline(deadline -> {
            int port = Ranks.freePort();
            FutureTask<ControlPlane> zero = joining(port, 0, options(zeroHasTls, deadline.multipliedBy(2)));
            String one = Ranks.failureOf(joining(port, 1, options(!zeroHasTls, deadline)));
            String tls = " (a rank with MILLRACE_TLS=1, which must be set on all ranks or on none)";
            assertTrue(one.contains(zeroHasTls ? tls
                    : "MILLRACE_TLS, and the secret or the certificates, must be the same on all ranks"), one);
            String message = Ranks.failureOf(zero);
            assertTrue(message.contains(zeroHasTls ? " (a rank without TLS that joins a group)" : tls), message);
        });
    }

    @Test
    void aRankZeroWithTlsNamesAnHttpClient() throws Exception {
        Ranks.beforeDeadline(deadline -> {
            int port = Ranks.freePort();
            FutureTask<ControlPlane> zero = joining(port, 0, options(true, deadline));
            try (RawRank http = RawRank.connect("tcp:127.0.0.1:" + port)) {
                http.send(java.nio.ByteBuffer.wrap("GET / HTTP/1.1\r\n\r\n".getBytes(StandardCharsets.US_ASCII)));
                http.awaitEnd();
            }
            String message = Ranks.failureOf(zero);
            assertTrue(message.contains("it begins with \"GET / HTTP/1.1....\" (an HTTP client)"), message);
        });
    }
}
