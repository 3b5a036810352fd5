package org.millrace.bootstrap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.bootstrap.Message.Proof;
import org.millrace.net.connection.Relay;
import org.millrace.net.socket.SocketOptions;

/** Connection of a rank to rank 0. */
@Timeout(60)
class BootstrapClientTest {

    private static final Duration ATTEMPT = Duration.ofMillis(20);
    private static final int PROOF_BYTES = MessageCodec.encode(new Proof(new byte[32])).remaining();

    /**
     * Control planes of rank 0. A join may complete although the test has cancelled it. Only {@link #allHaveLeft()}
     * then closes the control plane.
     */
    private final Queue<ControlPlane> joined = new ConcurrentLinkedQueue<>();

    @AfterEach
    void allHaveLeft() {
        Ranks.await("no rank is left", () -> {
            for (ControlPlane plane = joined.poll(); plane != null; plane = joined.poll()) {
                plane.close();
            }
            return Ranks.threadsLeft().isEmpty();
        });
    }

    private FutureTask<ControlPlane> rankZero(int port, JoinOptions options) {
        return Ranks.async(() -> {
            ControlPlane plane = ControlPlane.join("tcp:127.0.0.1:" + port, 0, 2, options);
            joined.add(plane);
            return plane;
        });
    }

    /**
     * Imitates a machine without a free core: a handshake lasts several times as long as the time limit of the first
     * attempt.
     */
    @Test
    void aSlowRankZeroIsGivenMoreTimeWithEachAttempt() throws Exception {
        int port = Ranks.freePort();
        JoinOptions options = Ranks.options(Duration.ofSeconds(30), "of the ranks");
        FutureTask<ControlPlane> zero = rankZero(port, options);
        AtomicInteger attempts = new AtomicInteger();
        try (Relay relay = new Relay(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
                Selector selector = Selector.open()) {
            relay.change(said -> {
                attempts.incrementAndGet();
                for (long end = System.nanoTime() + 12 * ATTEMPT.toNanos(); System.nanoTime() - end < 0;) {
                    LockSupport.parkNanos(ATTEMPT.toNanos());
                }
                return said;
            });
            GroupState group = new GroupState(RankIdentity.local(1, ""), 2);
            new BootstrapClient(selector, group.self(), 2, SocketOptions.defaults(), ATTEMPT)
                    .connect(Rendezvous.parse("tcp:127.0.0.1:" + relay.address().getPort(), options), group,
                            Deadline.in(Duration.ofSeconds(10)))
                    .close();
            assertTrue(attempts.get() > 1, "the first attempt was too short, as it was to be");
        } finally {
            zero.cancel(true);
        }
    }

    /**
     * A rank 0 without free descriptors closes the connection, either before or after it has identified itself. A
     * closed connection is not a refusal, so the connecting rank tries again.
     */
    @ParameterizedTest
    @ValueSource(ints = {1, 2})
    void aRankZeroThatEndsTheConnectionBeforeItLetsARankInIsAskedAgain(int word) throws Exception {
        int port = Ranks.freePort();
        FutureTask<ControlPlane> zero = rankZero(port, JoinOptions.within(Ranks.TIMEOUT));
        AtomicInteger words = new AtomicInteger();
        try (Relay relay = new Relay(new InetSocketAddress(InetAddress.getLoopbackAddress(), port))) {
            relay.change(said -> {
                if (words.incrementAndGet() == word) {
                    throw new UncheckedIOException(new IOException("the connection ends here, once"));
                }
                return said;
            });
            try (ControlPlane one =
                    ControlPlane.join("tcp:127.0.0.1:" + relay.address().getPort(), 1, 2, Ranks.TIMEOUT);
                    ControlPlane first = Ranks.get(zero)) {
                FutureTask<byte[][]> gather = Ranks.async(() -> first.allGather(new byte[] {1}));
                assertEquals(2, one.allGather(new byte[] {2})[1][0]);
                Ranks.get(gather);
            }
            assertTrue(words.get() > word, "it said everything anew");
        } finally {
            zero.cancel(true);
        }
    }

    @Test
    void aRankZeroThatAlwaysEndsTheConnectionIsNamedWhenTheDeadlineHasPassed() throws Exception {
        Ranks.beforeDeadline(deadline -> {
            int port = Ranks.freePort();
            FutureTask<ControlPlane> zero = rankZero(port, JoinOptions.within(Ranks.TIMEOUT));
            try (Relay relay = new Relay(new InetSocketAddress(InetAddress.getLoopbackAddress(), port))) {
                relay.change(said -> {
                    if (said.length == PROOF_BYTES) {
                        throw new UncheckedIOException(new IOException("no proof comes through"));
                    }
                    return said;
                });
                String rendezvous = "tcp:127.0.0.1:" + relay.address().getPort();
                String message = Ranks.failureOf(
                        Ranks.async(() -> ControlPlane.join(rendezvous, 1, 2, JoinOptions.within(deadline))));
                assertTrue(
                        message.contains("rank 0 has not answered within " + Deadline.in(deadline) + "; last attempt: "
                                + RankIdentity.local(0, "") + " ended the connection before it admitted this rank: "),
                        message);
            } finally {
                zero.cancel(true);
            }
        });
    }

    /**
     * Another program may listen at rank 0's address first, and may send anything. The client tries again, and the
     * program's message cannot forge a line of a log.
     */
    @Test
    void whoHasShownNothingIsNotBelievedAtOnce() throws Exception {
        int port = Ranks.freePort();
        String rendezvous = "tcp:127.0.0.1:" + port;
        FutureTask<ControlPlane> one;
        try (ServerSocket liar = new ServerSocket(port, 10, InetAddress.getLoopbackAddress())) {
            one = Ranks.async(() -> ControlPlane.join(rendezvous, 1, 2, Ranks.TIMEOUT));
            refuse(liar);
            refuse(liar);
        }
        try (ControlPlane zero = ControlPlane.join(rendezvous, 0, 2, Ranks.TIMEOUT);
                ControlPlane other = Ranks.get(one)) {
            assertNull(zero.failure());
            assertNull(other.failure());
        }
    }

    @Test
    void whatItSaysAgainAndAgainIsSaidAsItsWords() throws Exception {
        try (ServerSocket liar = new ServerSocket(0, 10, InetAddress.getLoopbackAddress())) {
            String rendezvous = "tcp:127.0.0.1:" + liar.getLocalPort();
            FutureTask<ControlPlane> one = Ranks.async(() -> ControlPlane.join(rendezvous, 1, 2, Ranks.TIMEOUT));
            while (!one.isDone()) {
                liar.setSoTimeout(100);
                try {
                    refuse(liar);
                } catch (SocketTimeoutException done) {
                    // No client connected within the timeout. The client may be waiting for its next attempt.
                }
            }
            String message = Ranks.failureOf(one);
            assertTrue(message.endsWith("refuses this rank: go?ERROR ?away; it has not shown that it knows the secret"),
                    message);
        }
    }

    private static void refuse(ServerSocket liar) throws IOException {
        try (Socket socket = liar.accept()) {
            socket.getInputStream().readNBytes(MessageCodec.HEADER_BYTES);
            socket.getOutputStream().write(MessageCodec.encode(new Message.Rejected("go\nERROR \u202eaway")).array());
            socket.shutdownOutput();
            while (socket.getInputStream().read() >= 0) {
                // The loop reads the rest of the client's message.
            }
        }
    }

    /** Rank 0 ends before it admits rank 1. Rank 0 of the next run then listens at the same address. */
    @Test
    void aRankThatHasMetRankZeroDoesNotJoinAnotherRun() throws Exception {
        try (ServerSocketChannel listener =
                Rendezvous.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), "rendezvous", "")) {
            String rendezvous = "tcp:127.0.0.1:" + listener.socket().getLocalPort();
            FutureTask<ControlPlane> one = Ranks.async(() -> ControlPlane.join(rendezvous, 1, 2, Ranks.TIMEOUT));
            for (int run = 1; run <= 2; run++) {
                challenge(listener, new RankIdentity(0, run, "host"));
            }
            String message = Ranks.failureOf(one);
            assertTrue(message.contains(": it has met rank 0 (pid 1 on host), which did not admit it, and now rank 0 "
                    + "(pid 2 on host); start all ranks again, or set MILLRACE_RUN_ID"), message);
        }
    }

    /** Answers the next client as rank 0, and closes the connection. */
    private static void challenge(ServerSocketChannel listener, RankIdentity zero) throws IOException {
        Queue<Message> said = new ConcurrentLinkedQueue<>();
        try (Selector selector = Selector.open(); SocketChannel channel = listener.accept()) {
            ControlConnection connection = new ControlConnection(channel, selector);
            while (said.isEmpty()) {
                selector.select();
                selector.selectedKeys().clear();
                connection.serve(said::add);
            }
            byte[] nonce = Secret.randomBytes();
            byte[] proof =
                    Secret.of("", null).proof(Secret.Side.COORDINATOR, (Message.Hello) said.remove(), zero, nonce);
            channel.write(MessageCodec.encode(new Message.Challenge(zero, nonce, proof)));
            channel.shutdownOutput();
        }
    }
}
