package org.millrace.bootstrap;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ProtocolException;
import java.net.ServerSocket;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.CommunicatorListener;
import org.millrace.bootstrap.Message.PeerMessage;
import org.millrace.bootstrap.Message.Received;
import org.millrace.bootstrap.Message.Recovery;
import org.millrace.config.Configuration;
import org.millrace.net.Warnings;
import org.millrace.net.connection.Relay;

/**
 * Control connections between hosts lose their streams and recover. Addresses of loopback stand for the hosts. A
 * connection does not recover if the peer's process has ended or violates the protocol.
 */
@Timeout(120)
class ControlRecoveryTest {

    private static final int SIZE = 3;
    private static final int ROUNDS = 60;
    private static final int MESSAGES = 40;

    private final int port = Ranks.freePort();
    private final InetSocketAddress zero = new InetSocketAddress(InetAddress.getByName("127.0.0.2"), port);

    ControlRecoveryTest() throws IOException {}

    @AfterEach
    void noThreadIsLeftBehind() {
        Ranks.assertNoThreadLeft();
    }

    private static JoinOptions options(boolean tls, String deadline) {
        return JoinOptions.of(
                Configuration.load(Map.of("MILLRACE_SECRET", "of the ranks", "MILLRACE_TLS", tls ? "1" : "0",
                        "MILLRACE_CONNECT_DEADLINE", "60s", "MILLRACE_RECONNECT_DEADLINE", deadline)),
                CommunicatorListener.STANDARD_ERROR);
    }

    private static byte[] words(int rank, int round) {
        return ByteBuffer.allocate(1000).putInt(rank).putInt(round).array();
    }

    /** Every sent message arrives once and in order, even if a stream is lost while the message is in flight. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aGroupGoesOnWhenItsConnectionsAreReset(boolean tls) throws Exception {
        JoinOptions options = options(tls, "60s");
        try (Relay relay = new Relay(InetAddress.getByName("127.0.0.3"), zero);
                Warnings warnings = new Warnings("org.millrace.net.socket.Reconnector.Outage")) {
            List<ControlPlane> planes = Ranks.onEach(SIZE,
                    rank -> ControlPlane.join(
                            rank == 0 ? "tcp:127.0.0.2:" + port : "tcp:127.0.0.3:" + relay.address().getPort(), rank,
                            SIZE, options));
            List<FutureTask<Void>> ranks = planes.stream().map(plane -> Ranks.async(() -> talk(plane))).toList();
            Ranks.await("half of the rounds", () -> planes.getFirst().receive(1, MESSAGES * ROUNDS / 2) != null);
            assertEquals(2 * 2 * (SIZE - 1) / 2, relay.cut());
            for (FutureTask<Void> rank : ranks) {
                Ranks.get(rank);
            }
            // The rank that reconnects has detected the loss of its stream. The other rank may receive the new stream
            // before it detects the loss.
            assertTrue(warnings.await("control connection with rank 0 ").contains("lost its stream"),
                    warnings.all().toString());
            warnings.await("is restored after");
            Ranks.closeAll(planes);
            planes.forEach(plane -> assertNull(plane.failure()));
        }
    }

    /** In each round, sends many messages to every other rank, then gathers and checks the words of all ranks. */
    private static Void talk(ControlPlane plane) {
        int rank = plane.rank();
        for (int round = 0; round < ROUNDS; round++) {
            for (int message = 0; message < MESSAGES; message++) {
                for (int to = 0; to < SIZE; to++) {
                    if (to != rank) {
                        plane.send(to, MESSAGES * round + message, words(rank, round));
                    }
                }
            }
            byte[][] all = plane.allGather(words(rank, round));
            for (int from = 0; from < SIZE; from++) {
                assertArrayEquals(words(from, round), all[from]);
            }
        }
        return null;
    }

    private FutureTask<ControlPlane> rankZero(JoinOptions options) {
        return Ranks.async(() -> ControlPlane.join("tcp:127.0.0.2:" + port, 0, 2, options));
    }

    private RawRank rankOne(JoinOptions options) throws IOException {
        return RawRank.introduced("tcp:127.0.0.2:" + port, options, 1, 2);
    }

    @Test
    void withADeadlineOfZeroNothingIsOffered() throws Exception {
        JoinOptions options = options(false, "0s");
        FutureTask<ControlPlane> joining = rankZero(options);
        try (RawRank one = rankOne(options); ControlPlane plane = Ranks.get(joining)) {
            assertTrue(one.receive() instanceof Message.Present);
            one.reset();
            assertTrue(Ranks.awaitFailure(plane).message().contains("is gone: "), plane.failure().message());
        }
    }

    /**
     * If the port of a peer's process is closed, the process has ended. Rank 0 then reports the loss at once, and does
     * not wait for the deadline.
     */
    @Test
    void aProcessThatHasEndedIsNotWaitedFor() throws Exception {
        JoinOptions options = options(false, "60s");
        FutureTask<ControlPlane> joining = rankZero(options);
        try (RawRank one = rankOne(options); ControlPlane plane = Ranks.get(joining)) {
            byte[] offer = one.receive(Recovery.class).offer();
            try (ServerSocket ended = new ServerSocket(0)) {
                offer[16] = (byte) ended.getLocalPort();
                offer[17] = (byte) (ended.getLocalPort() >> 8);
            }
            one.say(new Recovery(offer));
            one.reset();
            String said = Ranks.awaitFailure(plane).message();
            assertTrue(said.contains("rank 1") && said.contains("has ended"), said);
        }
    }

    /** A rank keeps a sent message until the peer has acknowledged it, and then frees the message. */
    @Test
    void whatHasComeIsTold() throws Exception {
        JoinOptions options = options(false, "60s");
        FutureTask<ControlPlane> joining = rankZero(options);
        try (RawRank one = rankOne(options); ControlPlane plane = Ranks.get(joining)) {
            one.say(new Recovery(one.receive(Recovery.class).offer()));
            for (int message = 0; message < 63; message++) {
                one.say(new PeerMessage(1, 0, message, new byte[0]));
            }
            assertTrue(assertThrows(ProtocolException.class, () -> one.receive(Received.class)).getMessage()
                    .contains("it has 64 messages"), "as the test does not keep them");
            one.say(new Received(1_000));
            String said = Ranks.awaitFailure(plane).message();
            assertTrue(said.contains("states that it has 1000 messages of this side, which sent fewer"), said);
        }
    }
}
