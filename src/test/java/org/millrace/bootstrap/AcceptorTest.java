package org.millrace.bootstrap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.Selector;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.CommunicatorListener;
import org.millrace.MillraceException;
import org.millrace.bootstrap.Message.Call;
import org.millrace.bootstrap.Message.Contribution;
import org.millrace.bootstrap.Message.Failed;
import org.millrace.bootstrap.Message.Hello;
import org.millrace.bootstrap.Message.Present;
import org.millrace.bootstrap.Message.Proof;
import org.millrace.bootstrap.Message.Rejected;
import org.millrace.bootstrap.Rendezvous.ServerAddress;
import org.millrace.config.Configuration;
import org.millrace.net.Warnings;
import org.millrace.net.connection.Relay;
import org.millrace.net.socket.SocketOptions;

/**
 * Rank 0 refuses ranks that do not fit into its group, and strangers that connect to its listener. Ranks refuse a
 * stranger that listens in place of rank 0.
 */
@Timeout(120)
@Tag("slow")
class AcceptorTest {

    private static final Duration LITTLE = Duration.ofMillis(400);

    @TempDir
    Path folder;

    private String file() {
        return "file:" + folder.resolve("group");
    }

    @AfterEach
    void nothingIsLeftBehind() {
        Ranks.assertNoThreadLeft();
        assertFalse(Files.exists(folder.resolve("group")), "file left behind");
    }

    private static FutureTask<ControlPlane> joining(String rendezvous, int rank, int size) {
        return joining(rendezvous, rank, size, JoinOptions.within(Ranks.TIMEOUT));
    }

    private static FutureTask<ControlPlane> joining(String rendezvous, int rank, int size, JoinOptions options) {
        return Ranks.async(() -> ControlPlane.join(rendezvous, rank, size, options));
    }

    /** Checks that the group is complete in spite of the stranger. */
    private void completes(FutureTask<ControlPlane> zero, String rendezvous) throws Exception {
        try (ControlPlane one = ControlPlane.join(rendezvous, 1, 2, Ranks.TIMEOUT);
                ControlPlane first = Ranks.get(zero)) {
            FutureTask<byte[][]> gather = Ranks.async(() -> first.allGather(new byte[] {1}));
            assertEquals(2, one.allGather(new byte[] {2}).length);
            assertEquals(2, Ranks.get(gather).length);
            assertNull(first.failure());
            assertNull(one.failure());
        }
    }

    @Test
    void sizesThatDisagreeEndTheGroupForAllOfIt() throws Exception {
        FutureTask<ControlPlane> zero = joining(file(), 0, 4);
        RawRank one = RawRank.introduced(file(), 1, 4);
        one.receive(Present.class);
        FutureTask<ControlPlane> two = joining(file(), 2, 3);
        String expected = RankIdentity.local(2, "") + " states that the group has 3 ranks, rank 0 states 4";
        Failed told = one.receive(Failed.class);
        assertEquals(2, told.failure().rank());
        assertEquals(expected, told.failure().message());
        one.close();
        for (FutureTask<ControlPlane> rank : List.of(zero, two)) {
            String message = Ranks.failureOf(rank);
            assertTrue(message.endsWith(expected), message);
        }
    }

    @Test
    void aRankThatComesAfterTheFailureIsToldToo() throws Exception {
        Ranks.beforeDeadline(deadline -> { // after the failure, rank 0 waits a second for missing ranks
            String rendezvous = file() + deadline;
            FutureTask<ControlPlane> zero = joining(rendezvous, 0, 4);
            FutureTask<ControlPlane> one = joining(rendezvous, 1, 4);
            FutureTask<ControlPlane> two = joining(rendezvous, 2, 3);
            Ranks.failureOf(one);
            FutureTask<ControlPlane> three = joining(rendezvous, 3, 4, JoinOptions.within(deadline));
            String message = Ranks.failureOf(three);
            assertTrue(
                    message.endsWith(RankIdentity.local(2, "") + " states that the group has 3 ranks, rank 0 states 4"),
                    message);
            Ranks.failureOf(zero);
            Ranks.failureOf(two);
        });
    }

    @ParameterizedTest
    @ValueSource(ints = {-1, 2, Integer.MAX_VALUE, Integer.MIN_VALUE})
    void aRankOutsideOfTheGroupEndsIt(int rank) throws Exception {
        FutureTask<ControlPlane> zero = joining(file(), 0, 2);
        RawRank raw = RawRank.introduced(file(), rank, 2);
        String expected = "rank " + rank + " (pid 4242 on raw-host) is outside of the group, whose ranks are 0 to 1";
        assertEquals(expected, raw.receive(Rejected.class).reason());
        raw.close(); // rank 0 waits some time for the refused client to close
        assertTrue(Ranks.failureOf(zero).endsWith(expected));
    }

    @Test
    void aRankThatIsTakenIsRefusedAndTheGroupGoesOn() throws Exception {
        String rendezvous = Ranks.freeTcp();
        FutureTask<ControlPlane> zero = joining(rendezvous, 0, 3);
        FutureTask<ControlPlane> one = joining(rendezvous, 1, 3);
        FutureTask<ControlPlane> again = joining(rendezvous, 1, 3);
        Ranks.await("one of the two is refused", () -> one.isDone() || again.isDone());
        FutureTask<ControlPlane> refused = one.isDone() ? one : again;
        FutureTask<ControlPlane> admitted = refused == one ? again : one;
        String message = Ranks.failureOf(refused);
        String process = RankIdentity.local(1, "").process();
        assertTrue(message.endsWith("two processes claim rank 1: " + process + ", and " + process
                + "; end the one of another run, or give each run its own port or MILLRACE_RUN_ID"), message);
        try (RawRank raw = RawRank.introduced(rendezvous, 0, 3)) {
            String taken = raw.receive(Rejected.class).reason();
            assertTrue(taken.startsWith("two processes claim rank 0: pid "), taken);
        }
        try (ControlPlane two = ControlPlane.join(rendezvous, 2, 3, Ranks.TIMEOUT);
                ControlPlane first = Ranks.get(zero);
                ControlPlane second = Ranks.get(admitted)) {
            FutureTask<byte[][]> a = Ranks.async(() -> first.allGather(new byte[0]));
            FutureTask<byte[][]> b = Ranks.async(() -> second.allGather(new byte[0]));
            two.allGather(new byte[0]);
            Ranks.get(a);
            Ranks.get(b);
            assertNull(two.failure());
        }
    }

    @Test
    void aSecretThatDiffersKeepsARankOut() throws Exception {
        for (String rendezvous : new String[] {Ranks.freeTcp(), file()}) {
            JoinOptions right = Ranks.options(Ranks.TIMEOUT, "right");
            FutureTask<ControlPlane> zero = joining(rendezvous, 0, 2, right);
            // a successful connection shows that rank 0 listens
            RawRank.connect(Rendezvous.parse(rendezvous, right)).close();
            for (String wrong : new String[] {null, "wrong"}) {
                String message = refusalOf(rendezvous, Ranks.options(Ranks.TIMEOUT, wrong));
                assertTrue(message.contains("rank 0 (pid ") && message.contains(" has another secret: "), message);
            }
            try (ControlPlane one = ControlPlane.join(rendezvous, 1, 2, right); ControlPlane first = Ranks.get(zero)) {
                assertNull(one.failure());
                assertNull(first.failure());
            }
        }
    }

    /**
     * Returns the refusal that rank 1 receives in one attempt. With a rendezvous file, ControlPlane.join would continue
     * after a refusal, because the address in the file may belong to an ended group.
     */
    private static String refusalOf(String rendezvous, JoinOptions options) throws IOException {
        if (rendezvous.startsWith("tcp:")) {
            return assertThrows(MillraceException.class, () -> ControlPlane.join(rendezvous, 1, 2, options))
                    .getMessage();
        }
        ServerAddress place = Rendezvous.parse(rendezvous, options).find(0);
        try (Selector selector = Selector.open()) {
            BootstrapClient client =
                    new BootstrapClient(selector, RankIdentity.local(1, ""), 2, SocketOptions.defaults());
            AtomicReference<String> refusal = new AtomicReference<>();
            Ranks.await("rank 0 answers", () -> {
                try {
                    client.handshake(place, Deadline.in(Ranks.TIMEOUT));
                } catch (BootstrapClient.NotRankZeroException e) {
                    refusal.set(e.getMessage());
                } catch (IOException e) {
                    return false; // rank 0 did not answer within one attempt
                }
                return true;
            });
            return refusal.get();
        }
    }

    @Test
    void whoDoesNotKnowTheSecretIsNotLetIn() throws Exception {
        String rendezvous = Ranks.freeTcp();
        FutureTask<ControlPlane> zero = joining(rendezvous, 0, 2, Ranks.options(Ranks.TIMEOUT, "right"));
        // This rank ignores that rank 0's proof is wrong, and sends its own proof.
        try (RawRank raw = RawRank.introduced(rendezvous, 1, 2)) {
            assertEquals("it does not know this group's secret", raw.receive(Rejected.class).reason());
        }
        try (RawRank parrot = RawRank.connect(rendezvous)) { // this rank sends back the proof that it received
            parrot.say(new Hello(new RankIdentity(1, 1, "parrot"), 2, Secret.randomBytes()));
            parrot.say(new Proof(parrot.receive(Message.Challenge.class).proof()));
            assertEquals("it does not know this group's secret", parrot.receive(Rejected.class).reason());
        }
        try (RawRank rude = RawRank.connect(rendezvous)) { // this rank sends a message before it is accepted
            rude.say(new Hello(new RankIdentity(1, 1, "rude"), 2, Secret.randomBytes()));
            rude.say(new Failed(new RemoteFailure(1, "let me in")));
            rude.awaitEnd();
        }
        try (RawRank rude = RawRank.connect(rendezvous)) {
            rude.say(new Contribution(1, 0, Call.BARRIER, new byte[0]));
            rude.awaitEnd();
        }
        try (ControlPlane one = ControlPlane.join(rendezvous, 1, 2, Ranks.options(Ranks.TIMEOUT, "right"));
                ControlPlane first = Ranks.get(zero)) {
            assertNull(one.failure());
            assertNull(first.failure());
        }
    }

    private static JoinOptions ofRun(String run) {
        return JoinOptions.of(Configuration.load(Map.of("MILLRACE_RUN_ID", run)), CommunicatorListener.STANDARD_ERROR);
    }

    /**
     * A rank of a killed run tries to join at a port that the next run uses. Without a check, this rank would join the
     * next run.
     */
    @Test
    void aRankOfAnotherRunIsRefusedByName() throws Exception {
        List<FutureTask<Void>> groups = List.of(Ranks.async(() -> refuse("1", "2")), Ranks.async(() -> refuse("", "2")),
                Ranks.async(() -> refuse("1", "")));
        for (FutureTask<Void> group : groups) { // each rank tries for two seconds
            Ranks.get(group);
        }
    }

    private static Void refuse(String before, String now) throws Exception {
        String rendezvous = Ranks.freeTcp();
        FutureTask<ControlPlane> late = joining(rendezvous, 1, 2, ofRun(before));
        FutureTask<ControlPlane> zero = joining(rendezvous, 0, 2, ofRun(now));
        String message = Ranks.failureOf(late);
        assertTrue(
                message.contains(rendezvous + ": " + RankIdentity.local(1, "") + " belongs to " + words(before) + ", "
                        + RankIdentity.local(0, "") + " to " + words(now) + "; end the other run, or use another port"),
                message);
        try (RawRank deaf = RawRank.connect(rendezvous)) { // this rank ignores the run ID of rank 0
            deaf.say(new Hello(new RankIdentity(1, 4242, "raw-host", before, "", 0), 2, Secret.randomBytes()));
            String refused = deaf.receive(Rejected.class).reason();
            assertTrue(refused.startsWith("rank 1 (pid 4242 on raw-host) belongs to " + words(before)), refused);
        }
        try (ControlPlane one = ControlPlane.join(rendezvous, 1, 2, ofRun(now)); ControlPlane first = Ranks.get(zero)) {
            assertNull(one.failure());
            assertNull(first.failure());
        }
        return null;
    }

    /**
     * The rank of the other run fails when it meets rank 0, and does not wait for its own run. No socket listens
     * afterwards.
     */
    @Test
    void aRankThatHasMetAnotherRunDoesNotWaitForItsOwn() throws Exception {
        int port = Ranks.freePort();
        FutureTask<ControlPlane> zero = joining("tcp:127.0.0.1:" + port, 0, 2, ofRun("2"));
        RawRank.connect("tcp:127.0.0.1:" + port).close(); // a successful connection shows that rank 0 listens
        try (Relay relay = new Relay(new InetSocketAddress(InetAddress.getLoopbackAddress(), port))) {
            relay.change(said -> {
                relay.breakNext(Integer.MAX_VALUE);
                return said;
            });
            String message = Ranks.failureOf(joining("tcp:127.0.0.1:" + relay.address().getPort(), 1, 2, ofRun("1")));
            assertTrue(message.contains("belongs to run \"1\""), message);
        }
        try (ControlPlane one = ControlPlane.join("tcp:127.0.0.1:" + port, 1, 2, ofRun("2"));
                ControlPlane first = Ranks.get(zero)) {
            assertNull(one.failure());
            assertNull(first.failure());
        }
    }

    private static String words(String run) {
        return run.isEmpty() ? "a run without MILLRACE_RUN_ID" : "run \"" + run + '"';
    }

    @Test
    void anotherReleaseIsToldSo() throws Exception {
        FutureTask<ControlPlane> zero = joining(file(), 0, 2);
        try (RawRank raw = RawRank.connect(file())) {
            ByteBuffer hello = MessageCodec.encode(new Hello(new RankIdentity(1, 1, "newer"), 2, new byte[16]));
            raw.send(hello.putInt(MessageCodec.HEADER_BYTES, 99));
            assertEquals("it uses version 99 of the control protocol, rank 0 version " + MessageCodec.VERSION
                    + "; all ranks need the same release", raw.receive(Rejected.class).reason());
        }
        completes(zero, file());
    }

    @Test
    void missingRanksAreNamedToThoseWhoCame() throws Exception {
        Ranks.beforeDeadline(deadline -> {
            String rendezvous = file() + deadline;
            FutureTask<ControlPlane> one = joining(rendezvous, 1, 5);
            FutureTask<ControlPlane> zero = joining(rendezvous, 0, 5, JoinOptions.within(deadline));
            FutureTask<ControlPlane> three = joining(rendezvous, 3, 5);
            String message = Ranks.failureOf(zero);
            assertTrue(message.startsWith("rank 0 of 5 cannot join the group at " + rendezvous
                    + ": rank 2, rank 4 have not joined within " + Deadline.in(deadline)), message);
            for (FutureTask<ControlPlane> rank : List.of(one, three)) {
                String told = Ranks.failureOf(rank);
                assertTrue(told.endsWith(": " + RankIdentity.local(0, "") + " failed: " + message), told);
            }
        });
    }

    @Test
    void aRankThatGivesUpNamesTheMissingAndIsTold() throws Exception {
        FutureTask<ControlPlane> zero = joining(file(), 0, 3);
        Ranks.beforeDeadline(deadline -> {
            FutureTask<ControlPlane> one = joining(file(), 1, 3, JoinOptions.within(deadline));
            String message = Ranks.failureOf(one);
            assertTrue(message.contains(": rank 2 has not joined within " + Deadline.in(deadline)), message);
            String told = Ranks.failureOf(zero);
            assertTrue(told.endsWith(RankIdentity.local(1, "") + " failed: " + message), told);
        });
    }

    @Test
    void withoutRankZeroTheDeadlineSaysWhatWasMissing() throws Exception {
        String message =
                assertThrows(MillraceException.class, () -> ControlPlane.join(file(), 1, 2, LITTLE)).getMessage();
        assertTrue(message.contains("rank 0 has not answered within 400 ms")
                && message.contains("rank 0 has not written " + folder.resolve("group")), message);
        String rendezvous = Ranks.freeTcp();
        String refused =
                assertThrows(MillraceException.class, () -> ControlPlane.join(rendezvous, 1, 2, LITTLE)).getMessage();
        assertTrue(refused.contains("Connection refused: no process listens at " + rendezvous.substring(4)), refused);
        String unknown = assertThrows(MillraceException.class,
                () -> ControlPlane.join("tcp:no-such-host.invalid:1", 1, 2, LITTLE)).getMessage();
        assertTrue(unknown.contains("the host no-such-host.invalid is unknown here"), unknown);
    }

    @Test
    void aRankThatIsLostWhileOthersAreStillToComeEndsTheGroup() throws Exception {
        FutureTask<ControlPlane> zero = joining(file(), 0, 3);
        RawRank raw = RawRank.introduced(file(), 1, 3);
        raw.receive(Present.class);
        raw.close();
        String message = Ranks.failureOf(zero);
        assertTrue(message.contains("rank 1 (pid 4242 on raw-host) is gone: "), message);
    }

    @Test
    void strangersChangeNothing() throws Exception {
        String rendezvous = Ranks.freeTcp();
        FutureTask<ControlPlane> zero = joining(rendezvous, 0, 2);
        long seed = 20260101;
        Random random = new Random(seed);
        RawRank silent = RawRank.connect(rendezvous);
        RawRank half = RawRank.connect(rendezvous);
        half.send(MessageCodec.encode(new Hello(new RankIdentity(1, 1, "half"), 2, new byte[16])).limit(20));
        for (int trial = 0; trial < 200; trial++) {
            try (RawRank garbage = RawRank.connect(rendezvous)) {
                byte[] bytes = new byte[MessageCodec.HEADER_BYTES + random.nextInt(200)];
                random.nextBytes(bytes);
                if (trial % 2 == 0) { // valid magic, length and type, so that later checks are reached
                    ByteBuffer.wrap(bytes)
                            .putInt(MessageCodec.MAGIC)
                            .putInt(bytes.length - MessageCodec.HEADER_BYTES)
                            .put((byte) random.nextInt(12));
                }
                garbage.send(ByteBuffer.wrap(bytes));
                garbage.awaitEndOrLeave();
            } catch (AssertionError e) {
                throw new AssertionError("seed " + seed + ", trial " + trial, e);
            }
        }
        completes(zero, rendezvous);
        half.close();
        silent.close();
    }

    @Test
    void strangersAreLoggedOnce() throws Exception {
        try (Warnings warnings = new Warnings(Acceptor.class.getName())) {
            FutureTask<ControlPlane> zero = joining(file(), 0, 2);
            for (int visit = 0; visit < 3; visit++) {
                try (RawRank http = RawRank.connect(file())) {
                    http.send(ByteBuffer.wrap("GET / HTTP/1.1\r\n\r\n".getBytes(StandardCharsets.UTF_8)));
                    http.awaitEnd();
                }
            }
            completes(zero, file());
            List<String> all = warnings.all();
            assertEquals(1, all.size(), all::toString);
            assertTrue(all.getFirst()
                    .matches("rank 0 refused a connection from 127\\.0\\.0\\.1:\\d+: speaks another protocol .*"),
                    all::toString);
        }
    }

    static List<Arguments> strangers() {
        return List.of(Arguments.of(ByteBuffer.wrap("GET / HTTP/1.1\r\n\r\n".getBytes(StandardCharsets.UTF_8)),
                "speaks another protocol than Millrace's control plane: it begins with \"GET / HTT\" (an HTTP client)"),
                Arguments.of(ByteBuffer.wrap("MLRCTLS1 and 16 random bytes".getBytes(StandardCharsets.US_ASCII)),
                        "speaks another protocol than Millrace's control plane: it begins with \"MLRCTLS1 \" (a rank "
                                + "with MILLRACE_TLS=1, which must be set on all ranks or on none)"),
                Arguments.of(ByteBuffer.wrap("\26\3\1\2\0\1\0\1\374\3\3".getBytes(StandardCharsets.ISO_8859_1)),
                        "\" (a TLS client)"),
                Arguments.of(ByteBuffer.wrap("MILLRACE\21\0\0\0".getBytes(StandardCharsets.ISO_8859_1)),
                        "it begins with \"MILLRACE?\" (a rank without TLS that sends data)"),

                Arguments.of(ByteBuffer.allocate(MessageCodec.HEADER_BYTES)
                        .putInt(MessageCodec.MAGIC)
                        .putInt(MessageCodec.MAX_BODY_BEFORE_PROOF + 1)
                        .put((byte) 1)
                        // rank 0 allocates less memory for a stranger than for a member
                        .flip(), "announced a message of 16385 bytes; the limit is 16384"),
                Arguments.of(MessageCodec.encode(new Proof(new byte[32])), "sent a Proof before its admission"));
    }

    @ParameterizedTest
    @MethodSource("strangers")
    void whyAStrangerWasDroppedIsSaidWithTheDeadline(ByteBuffer words, String expected) throws Exception {
        Ranks.beforeDeadline(deadline -> {
            String rendezvous = Ranks.freeTcp();
            FutureTask<ControlPlane> zero = joining(rendezvous, 0, 2, JoinOptions.within(deadline));
            try (RawRank stranger = RawRank.connect(rendezvous)) {
                stranger.send(words.duplicate());
                stranger.awaitEnd();
            }
            String message = Ranks.failureOf(zero);
            assertTrue(message.contains(
                    "rank 1 has not joined within " + Deadline.in(deadline) + "; refused meanwhile: 127.0.0.1:")
                    && message.endsWith(expected), message);
        });
    }

    /** Runs a server that sends the greeting to each client and ignores the client's data. */
    private static FutureTask<Void> serve(ServerSocket server, String greeting) {
        return Ranks.async(() -> {
            while (true) {
                try (Socket socket = server.accept()) {
                    socket.getOutputStream().write(greeting.getBytes(StandardCharsets.UTF_8));
                    while (socket.getInputStream().read() >= 0) {
                        // the client's data is ignored
                    }
                } catch (IOException e) {
                    if (server.isClosed()) {
                        return null;
                    }
                }
            }
        });
    }

    @Test
    void somethingElseListensWhereRankZeroShould() throws Exception {
        int port = Ranks.freePort();
        try (ServerSocket http = new ServerSocket(port, 10, InetAddress.getLoopbackAddress())) {
            serve(http, "HTTP/1.1 400 Bad Request\r\n\r\n");
            String message = assertThrows(MillraceException.class,
                    () -> ControlPlane.join("tcp:127.0.0.1:" + port, 1, 2, Ranks.TIMEOUT)).getMessage();
            assertTrue(message.endsWith("the process at 127.0.0.1:" + port
                    + " speaks another protocol than Millrace's control plane: it begins with \"HTTP/1.1 \" (an HTTP server)"),
                    message);
            String inUse = assertThrows(MillraceException.class,
                    () -> ControlPlane.join("tcp:127.0.0.1:" + port, 0, 2, Ranks.TIMEOUT)).getMessage();
            assertTrue(inUse.contains("rank 0 cannot listen on tcp:127.0.0.1:" + port + ": Address already in use"),
                    inUse);
        }
    }

    @Test
    void somethingSilentListensWhereRankZeroShould() throws Exception {
        try (ServerSocket silent = new ServerSocket(0, 10, InetAddress.getLoopbackAddress())) {
            String rendezvous = "tcp:127.0.0.1:" + silent.getLocalPort();
            String message = assertThrows(MillraceException.class, () -> ControlPlane.join(rendezvous, 1, 2, LITTLE))
                    .getMessage();
            assertTrue(message.endsWith("the process at " + rendezvous.substring(4) + " did not answer within 400 ms"),
                    message);
        }
    }
}
