package org.millrace.bootstrap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.MillraceException;
import org.millrace.bootstrap.Acceptor.AcceptedConnection;
import org.millrace.bootstrap.Acceptor.AcceptedConnection.Stage;
import org.millrace.bootstrap.Message.Hello;
import org.millrace.bootstrap.Message.Proof;
import org.millrace.bootstrap.Rendezvous.BootstrapListener;

/**
 * A rank of an earlier run without a run ID waits at the address of the next run. Start times, in hundredths of a
 * second, distinguish the two runs.
 */
@Timeout(60)
class LeftOverRankTest {

    private static final int SIZE = 3;
    private static final long START = 100_000;
    private static final long PID = 5000;

    private final RankIdentity zero = new RankIdentity(0, PID, "host", "", "kernel", START);
    private final GroupState group = new GroupState(zero, SIZE);
    private final Secret secret = Secret.of("", null);
    private final List<Long> admitted = new ArrayList<>();
    private final List<String> contradictions = new ArrayList<>();
    private final List<SocketChannel> clients = new ArrayList<>();
    private Selector selector;
    private ServerSocketChannel listener;
    private Acceptor acceptor;

    @BeforeEach
    void open() throws IOException {
        selector = Selector.open();
        listener = Rendezvous.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), "rendezvous", "");
        acceptor = new Acceptor(group,
                new BootstrapListener(listener, InetAddress.getLoopbackAddress(), secret, null, () -> {}), selector,
                new Acceptor.Host() {
                    @Override
                    public void admit(AcceptedConnection peer) throws IOException {
                        admitted.add(peer.identity().pid());
                        group.present(peer.identity());
                    }

                    @Override
                    public void contradicted(int rank, String how) {
                        contradictions.add(how);
                    }
                }, listener::accept);
    }

    @AfterEach
    void close() throws IOException {
        acceptor.ended();
        for (SocketChannel client : clients) {
            client.close();
        }
        selector.close();
    }

    private AcceptedConnection asks(RankIdentity who) throws IOException {
        return asks(who, SIZE);
    }

    private AcceptedConnection asks(RankIdentity who, int size) throws IOException {
        List<SelectionKey> before = List.copyOf(selector.keys());
        clients.add(SocketChannel.open(listener.getLocalAddress()));
        while (selector.keys().size() == before.size()) {
            acceptor.accept();
        }
        AcceptedConnection peer = (AcceptedConnection) selector.keys()
                .stream()
                .filter(key -> !before.contains(key))
                .findAny()
                .orElseThrow()
                .attachment();
        Hello hello = new Hello(who, size, Secret.randomBytes());
        acceptor.handle(peer, hello);
        acceptor.handle(peer, new Proof(secret.proof(Secret.Side.MEMBER, hello, zero, peer.nonce)));
        return peer;
    }

    /**
     * Returns the identity of a rank 1 on rank 0's machine. Both arguments are added to rank 0's values: {@code ticks}
     * to the start time, and {@code processes} to the process number.
     */
    private static RankIdentity one(long ticks, long processes) {
        return new RankIdentity(1, PID + processes, "host", "", "kernel", START + ticks);
    }

    /** Returns the reason of the latest refusal. */
    private String refusal() {
        return assertThrows(MillraceException.class,
                () -> group.awaitComplete(Deadline.in(Duration.ofMillis(1)), "here")).getMessage();
    }

    @Test
    void theRightRankReplacesTheHeldOnes() throws IOException {
        AcceptedConnection oldest = asks(one(-500, -900));
        assertEquals(Stage.HELD, oldest.stage);
        AcceptedConnection older = asks(one(-231, -400));
        assertEquals(Stage.HELD, older.stage);
        assertEquals(Stage.REFUSED, oldest.stage);
        assertEquals(List.of(), admitted);
        AcceptedConnection right = asks(one(1, 7));
        assertEquals(Stage.MEMBER, right.stage);
        assertEquals(Stage.REFUSED, older.stage);
        assertEquals(List.of(PID + 7), admitted);
        String reason = refusal();
        assertTrue(reason.contains("two processes claim rank 1: pid 4600 on host (started 2,310 ms before rank 0), and "
                + "pid 5007 on host (started 10 ms after rank 0); end the one of another run, or give each run its own"
                + " port or MILLRACE_RUN_ID"), reason);
        assertEquals(Stage.REFUSED, asks(one(-500, -900)).stage, "it is late");
        assertEquals(List.of(), contradictions);
    }

    /**
     * Start times in ticks are too coarse if processes start within milliseconds. Process numbers then distinguish the
     * runs.
     */
    @ParameterizedTest
    @CsvSource({"0, -9, 1, 2", "-1, -9, 0, -1", "-1, -9, 1, 1", "-3, -4, 1, 9"})
    void processIdsDistinguishRunsWithinMilliseconds(long ticksBefore, long processesBefore, long ticks, long processes)
            throws IOException {
        AcceptedConnection wrong = asks(one(ticksBefore, processesBefore));
        AcceptedConnection right = asks(one(ticks, processes));
        assertEquals(List.of(Stage.REFUSED, processes < 0 ? Stage.HELD : Stage.MEMBER),
                List.of(wrong.stage, right.stage));
    }

    @Test
    void aWrongMemberEndsTheJoin() throws IOException {
        assertEquals(Stage.MEMBER, asks(one(300, 900)).stage);
        assertEquals(Stage.REFUSED, asks(one(400, 1000)).stage);
        assertEquals(List.of(), contradictions);
        assertEquals(Stage.REFUSED, asks(one(2, 1)).stage);
        assertEquals(1, contradictions.size());
        assertTrue(contradictions.getFirst()
                .startsWith("two processes claim rank 1: pid 5900 on host (started 3,000 ms "
                        + "after rank 0), and pid 5001 on host"),
                contradictions::toString);
    }

    /** Process numbers of another machine are not comparable. Only the order of the two start times is known. */
    @Test
    void theLaterRankOfAnotherMachineEndsTheJoin() throws IOException {
        assertEquals(Stage.MEMBER, asks(new RankIdentity(1, 9, "other", "", "another kernel", START)).stage);
        assertEquals(Stage.REFUSED, asks(new RankIdentity(1, 8, "other", "", "another kernel", START - 1)).stage);
        assertEquals(List.of(), contradictions);
        assertEquals(Stage.REFUSED, asks(new RankIdentity(1, 10, "other", "", "another kernel", START)).stage);
        assertEquals(1, contradictions.size());
    }

    /** The left-over rank started 0.3 s before rank 0, and the rank of the present run 0.4 s after rank 0. */
    @Test
    void aRankThatStartedAfterRankZeroReplacesANearerOne() throws IOException {
        AcceptedConnection leftOver = asks(one(-30, -40));
        assertEquals(Stage.MEMBER, asks(one(40, 90)).stage);
        assertEquals(Stage.REFUSED, leftOver.stage);
        assertEquals(Stage.REFUSED, asks(one(-1, -1)).stage);
        assertEquals(List.of(), contradictions);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void ranksOfTwoMachinesWithOneNumberEndTheJoin(boolean heldFirst) throws IOException {
        AcceptedConnection first = asks(one(heldFirst ? -30 : 1, heldFirst ? -40 : 1));
        assertEquals(heldFirst ? Stage.HELD : Stage.MEMBER, first.stage);
        assertEquals(Stage.REFUSED, asks(new RankIdentity(1, 9, "other", "", "another kernel", START)).stage);
        assertEquals(heldFirst ? Stage.REFUSED : Stage.MEMBER, first.stage);
        assertEquals(1, contradictions.size());
    }

    @Test
    void aLeftOverRankOfAGroupOfAnotherSizeDoesNotEndTheJoin() throws IOException {
        assertEquals(Stage.REFUSED, asks(one(-30, -40), SIZE + 1).stage);
        assertEquals(List.of(), contradictions);
        assertEquals(Stage.REFUSED, asks(one(1, 1), SIZE + 1).stage);
        assertEquals(1, contradictions.size());
    }

    @Test
    void aRankThatStartedBeforeRankZeroLearnsOfAnEarlierFailure() throws IOException {
        group.failed(new RemoteFailure(2, "rank 2 failed"));
        assertEquals(Stage.REFUSED, asks(one(-50, -300)).stage);
    }

    @ParameterizedTest
    @CsvSource({"0, -1, 200", "-2, -9, 200", "-5, -30, 500", "-99999, 9, 1000"})
    void aRankIsHeldForAMoment(long ticks, long processes, long millis) throws IOException {
        AcceptedConnection early = asks(one(ticks, processes));
        assertEquals(Stage.HELD, early.stage);
        assertEquals(Duration.ofMillis(millis), early.handshake.allowed());
        early.handshake = Deadline.in(Duration.ofMinutes(1));
        assertEquals(List.of(), acceptor.due());
        early.handshake = Deadline.in(Duration.ZERO);
        acceptor.tick();
        assertEquals(List.of(early), acceptor.due());
        acceptor.admit(early);
        assertEquals(List.of(PID + processes), admitted);
        assertEquals(List.of(), acceptor.due());
    }

    @Test
    void aHeldRankLearnsOfTheFailure() throws IOException {
        AcceptedConnection one = asks(one(-50, -300));
        group.failed(new RemoteFailure(2, "rank 2 failed"));
        assertEquals(List.of(one), acceptor.due());
        acceptor.admit(one);
        assertEquals(Stage.REFUSED, one.stage);
    }

    @Test
    void aHeldRankLearnsThatRankZeroLeaves() throws IOException {
        AcceptedConnection one = asks(one(-50, -300));
        acceptor.leave();
        assertEquals(Stage.REFUSED, one.stage);
    }

    @Test
    void aRunIdMakesItUnnecessaryToHoldARank() throws IOException {
        GroupState ofRun = new GroupState(new RankIdentity(0, PID, "host", "7", "kernel", START), SIZE);
        assertEquals(-1, new RankIdentity(1, 1, "host", "7", "kernel", 1).millisBeforeZero(ofRun.self()));
        assertEquals(Stage.MEMBER, asks(new RankIdentity(1, 1, "host", "", "another kernel", 1)).stage);
        assertEquals(Stage.MEMBER, asks(new RankIdentity(2, 1, "host")).stage);
    }
}
