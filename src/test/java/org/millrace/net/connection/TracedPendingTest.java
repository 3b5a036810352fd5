package org.millrace.net.connection;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.config.Configuration;
import org.millrace.net.Connected;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Pending;
import org.millrace.net.socket.SilentListener;
import org.millrace.plugin.path.NetEndpoint;
import org.millrace.trace.OwnTrace;
import org.millrace.trace.TraceReader;
import org.millrace.trace.TracedJoin;
import org.millrace.trace.TracedState;

/** While a connection is being made, the trace names the event that the connection awaits in each phase. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class TracedPendingTest {

    private static final long COMMUNICATOR = 0x77;

    @TempDir
    private Path directory;
    private OwnTrace trace;

    @BeforeEach
    void trace() throws IOException {
        trace = new OwnTrace(directory);
    }

    @AfterEach
    void usualTrace() {
        trace.close();
    }

    private List<TracedJoin> open() throws IOException {
        return TraceReader.readAll(directory, (file, problem) -> {})
                .stream()
                .flatMap(process -> process.joins().stream())
                .filter(each -> each.state() == TracedState.OPEN)
                .toList();
    }

    /** Polls until the trace describes the connection with the given words. */
    private TracedJoin awaitText(Pending<?> pending, String words) throws IOException {
        while (open().stream().noneMatch(each -> each.activity().contains(words))) {
            assertNull(pending.poll());
        }
        assertEquals(1, open().size(), () -> words);
        return open().getFirst();
    }

    private static NetEndpoint endpoint(boolean tls) {
        Map<String, String> settings = Map.of("MILLRACE_NET", "socket", "NCCL_SOCKET_IFNAME", "lo", "MILLRACE_TLS",
                tls ? "1" : "0", "MILLRACE_SECRET", "of the test", "MILLRACE_CONNECT_DEADLINE", "300s");
        return NetEndpoint.open(Configuration.ofPlugin(settings::get));
    }

    @ParameterizedTest
    @CsvSource({"false, the listener's answer", "true, the TLS handshake"})
    void aListenerThatIsSilentIsNamedWithThePhase(boolean tls, String phase) throws Exception {
        try (NetEndpoint endpoint = endpoint(tls);
                ServerSocket silent = new ServerSocket(0, 10, InetAddress.getLoopbackAddress())) {
            ConnectionKey key = Connected.newKey();
            byte[] address =
                    SilentListener.address(new InetSocketAddress(silent.getInetAddress(), silent.getLocalPort()));
            try (Pending<FrameSender> pending =
                    new TracedPending<>(endpoint.network().connect(address, key), COMMUNICATOR, 3)) {
                TracedJoin join = awaitText(pending, "socket connection " + key + " to port " + silent.getLocalPort()
                        + " of 127.0.0.1 waits for " + phase);
                assertEquals(List.of(COMMUNICATOR, 3, 0), List.of(join.hash(), join.rank(), join.size()));
            }
            assertEquals(List.of(), open(), "given up");
        }
    }

    @Test
    void anExpectedConnectionIsTracedUntilItIsMade() throws Exception {
        try (NetEndpoint endpoint = endpoint(false)) {
            ConnectionKey key = Connected.newKey();
            try (Pending<FrameReceiver> expected =
                    new TracedPending<>(endpoint.listener().expect(key), COMMUNICATOR, -1)) {
                awaitText(expected, "connection " + key + " expected by socket listener 127.0.0.1 port ");
                Connected made = Connected.await(endpoint.listener(),
                        endpoint.network().connect(endpoint.listener().address(), key), expected);
                assertEquals(List.of(), open(), "made");
                made.close();
            }
        }
    }

    @Test
    void theMissingConnectionOfAMeshIsNamed() throws Exception {
        try (NetEndpoint endpoint = endpoint(false);
                ServerSocket silent = new ServerSocket(0, 10, InetAddress.getLoopbackAddress())) {
            byte[] own = endpoint.listener().address();
            byte[] other =
                    SilentListener.address(new InetSocketAddress(silent.getInetAddress(), silent.getLocalPort()));
            try (Pending<FullMesh> mesh = FullMesh.begin(endpoint.network(), endpoint.listener(),
                    new byte[][] {own, other}, 0, 77, COMMUNICATOR)) {
                TracedJoin join = awaitText(mesh,
                        "of the connections with all ranks, those with rank 1 are missing: socket connection ");
                assertTrue(join.activity().contains("port " + silent.getLocalPort() + " of 127.0.0.1"), join::toString);
                assertEquals(List.of(COMMUNICATOR, 0, 0), List.of(join.hash(), join.rank(), join.size()));
            }
            assertEquals(List.of(), open(), "given up");
        }
    }

    @Test
    void aConnectionThatFailsIsNotTracedAnyLonger() throws Exception {
        var failing = new Pending<FrameSender>() {
            private boolean fails;

            @Override
            public FrameSender poll() {
                if (fails) {
                    throw new ConnectionException("of the test");
                }
                return null;
            }

            @Override
            public void close() {
                // There is no connection to close.
            }
        };
        Pending<FrameSender> pending = new TracedPending<>(failing, COMMUNICATOR, 3);
        awaitText(pending, "waits for its other end");
        failing.fails = true;
        assertThrows(ConnectionException.class, pending::poll);
        assertEquals(List.of(), open(), "failed, and not closed by its owner");
    }

    /** A listener that accepts a stream, and sends only a part of its answer. */
    @Test
    void aPartOfAnAnswerIsNamed() throws Exception {
        Map<String, String> settings = Map.of("MILLRACE_NET", "socket", "NCCL_SOCKET_IFNAME", "lo",
                "MILLRACE_CONNECT_DEADLINE", "1s", "MILLRACE_SOCKET_STREAMS", "1");
        try (NetEndpoint endpoint = NetEndpoint.open(Configuration.ofPlugin(settings::get));
                ServerSocket listener = new ServerSocket(0, 10, InetAddress.getLoopbackAddress());
                Pending<FrameSender> pending =
                        endpoint.network()
                                .connect(SilentListener.address(
                                        new InetSocketAddress(listener.getInetAddress(), listener.getLocalPort())),
                                        Connected.newKey());
                Socket client = listener.accept()) {
            SilentListener.accept(client);
            String message = null;
            while (message == null) {
                try {
                    assertNull(pending.poll());
                } catch (ConnectionException late) {
                    message = late.getMessage();
                }
            }
            assertTrue(message.contains("still waiting for the rest of the listener's answer"), message);
        }
    }
}
