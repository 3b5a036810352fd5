package org.millrace.bootstrap;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketTimeoutException;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.logging.log4j.Level;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.AbortedException;
import org.millrace.DeadlineException;
import org.millrace.ExcludedException;
import org.millrace.MillraceException;
import org.millrace.MismatchException;
import org.millrace.bootstrap.Decision.Request;
import org.millrace.bootstrap.Recovery.Mail;
import org.millrace.bootstrap.Split.SplitRendezvous;
import org.millrace.net.Warnings;
import org.millrace.net.connection.ListeningPorts;

/** The living ranks agree, whichever ranks are lost before and during the agreement. */
@Timeout(60)
class RecoveryTest {

    private static final Duration LONG = Duration.ofMinutes(5);
    private static final Duration SHORT = Duration.ofMillis(300);

    @TempDir
    Path directory;
    private List<ControlPlane> planes;
    private List<Recovery> recoveries;

    /** Ends a rank in the middle of an agreement. */
    private static final class LostError extends Error {

        private static final long serialVersionUID = 1L;
    }

    private void open(String rendezvous, int size, Duration deadline) throws Exception {
        planes = Ranks.onEach(size, rank -> ControlPlane.join(rendezvous, rank, size, deadline));
        recoveries = Ranks.onEach(size, rank -> Recovery.open(planes.get(rank)));
    }

    private void openWithPlace(int size) throws Exception {
        open("file:" + directory.resolve("group"), size, Ranks.TIMEOUT);
    }

    @Test
    void thePortOfEachRankIsLoggedWithItsPurpose() throws Exception {
        try (Warnings log = new Warnings(ListeningPorts.class.getName(), Level.INFO)) {
            openWithPlace(2);
            assertEquals(2, log.all().stream().filter(line -> line.endsWith("(recovery)")).count(),
                    () -> log.all().toString());
        }
    }

    @AfterEach
    void close() {
        recoveries.forEach(Recovery::close);
        planes.forEach(ControlPlane::close);
        Ranks.assertNoThreadLeft();
    }

    private void lose(int... ranks) {
        IntStream.of(ranks).forEach(rank -> recoveries.get(rank).close());
    }

    private static ControlPlane completed(ControlPlane control) {
        try {
            control.complete();
            return control;
        } catch (MillraceException e) {
            control.close();
            throw e;
        }
    }

    private static List<Integer> shape(ControlPlane made) {
        made.barrier();
        return List.of(made.rank(), made.size());
    }

    /** Shrinks a group on one rank. Returns the rank and the size of the new group. */
    private List<Integer> shrink(int rank, Duration deadline) {
        try (ControlPlane made = recoveries.get(rank).shrink(deadline, System.nanoTime(), RecoveryTest::completed)) {
            return shape(made);
        } finally {
            recoveries.get(rank).close();
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 3})
    void aRankThatIsLostAfterTheDecisionIsLeftOutOfTheNextOne(int victim) throws Exception {
        openWithPlace(5);
        lose(2);
        List<ControlPlane> made = Ranks.onEach(5, rank -> {
            if (rank == 2) {
                return null;
            }
            Recovery own = recoveries.get(rank);
            try {
                return own.shrink(LONG, System.nanoTime(), control -> {
                    if (rank == victim && control.size() == 4) {
                        own.close();
                        control.close();
                        throw new LostError();
                    }
                    return completed(control);
                });
            } catch (LostError lost) {
                return null;
            }
        });
        made.stream().filter(Objects::nonNull).forEach(each -> assertEquals(3, each.size()));
        assertEquals(List.of(0, 1, 2), made.stream().filter(Objects::nonNull).map(ControlPlane::rank).toList());
        Ranks.onEach(3, rank -> {
            made.stream().filter(Objects::nonNull).toList().get(rank).close();
            return null;
        });
    }

    /**
     * Connects a rank to the control plane of an agreement, without the rest of a recovery. In this control plane, rank
     * {@code at} has number 0.
     */
    private ControlPlane raw(int rank, int at) {
        return ControlPlane.meet(recoveries.get(rank).meetings[at], rank - at, planes.size(), Deadline.in(LONG),
                planes.get(rank).options().ofOneRun());
    }

    private static byte[] await(ControlPlane raw, int from, long tag) {
        return Objects.requireNonNull(raw.await(() -> raw.receive(from, tag), Deadline.in(LONG)));
    }

    /** Imitates an unreachable host. Returns the address of a listener that answers no further connection. */
    private static InetSocketAddress unreachable(List<SocketChannel> clients, ServerSocketChannel listener)
            throws Exception {
        listener.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 1);
        InetSocketAddress address = (InetSocketAddress) listener.getLocalAddress();
        while (true) {
            SocketChannel client = SocketChannel.open();
            clients.add(client);
            try {
                client.socket().connect(address, 300);
            } catch (SocketTimeoutException full) {
                return address;
            }
        }
    }

    /** A living rank that receives no answer for some seconds stops waiting for the coordinator. */
    @Test
    void unreachableRanksDoNotDelayTheAnswersToLivingOnes() throws Exception {
        int size = 16;
        openWithPlace(size);
        List<SocketChannel> clients = new ArrayList<>();
        try (ServerSocketChannel hole = ServerSocketChannel.open()) {
            Arrays.fill(recoveries.get(0).meetings, 1, size - 1,
                    new SplitRendezvous(null, unreachable(clients, hole), null, null));
            FutureTask<List<Integer>> zero = Ranks.async(() -> shrink(0, LONG));
            ControlPlane living = raw(size - 1, 0);
            living.send(0, Mail.SHRINK.tag(0), new Request(true, 0, -1, new byte[0]).encode());
            for (int answer = 0; answer < 10; answer++) {
                await(living, 0, Mail.WAITING.tag(0));
            }
            lose(0);
            assertThrows(AbortedException.class, () -> Ranks.get(zero));
            living.close();
        } finally {
            for (SocketChannel client : clients) {
                client.close();
            }
        }
    }

    @Test
    void aGroupThatIsNotCompletedInTimeNamesTheMissingRank() throws Exception {
        openWithPlace(3);
        lose(0);
        FutureTask<Object> two = Ranks.async(() -> recoveries.get(2).shrink(SHORT, System.nanoTime(), control -> {
            Ranks.awaitFailure(control);
            control.close();
            throw new MillraceException("rank 2 does not take part in the completion");
        }));
        DeadlineException late = assertThrows(DeadlineException.class,
                () -> recoveries.get(1).shrink(SHORT, System.nanoTime(), control -> {
                    try (control) {
                        control.barrier();
                        return control;
                    }
                }));
        assertEquals(2, late.peer().orElseThrow());
        String said = late.getMessage();
        assertTrue(said.startsWith("rank 1: the new group of ranks [1, 2] was not completed because of rank 2: "),
                said);
        assertThrows(MillraceException.class, () -> Ranks.get(two));
    }

    @Test
    void aGroupThatIsNotCompletedAtFirstIsTriedAgain() throws Exception {
        openWithPlace(3);
        lose(1);
        AtomicBoolean hasFailed = new AtomicBoolean();
        assertEquals(List.of(List.of(0, 2), List.of(1, 2)), Ranks.onEach(2, each -> {
            try (ControlPlane made = recoveries.get(2 * each).shrink(LONG, System.nanoTime(), control -> {
                if (each == 1 && hasFailed.compareAndSet(false, true)) {
                    control.close();
                    throw new MillraceException("rank 2 cannot complete the group");
                }
                return completed(control);
            })) {
                return shape(made);
            }
        }));
    }

    @Test
    void aVoteEndsOnceAMajorityIsImpossible() throws Exception {
        open(Ranks.freeTcp(), 3, Ranks.TIMEOUT);
        FutureTask<List<Integer>> zero = Ranks.async(() -> shrink(0, LONG));
        List<ControlPlane> others = List.of(raw(1, 0), raw(2, 0));
        byte[] asked = new Request(true, 0, -1, new byte[0]).encode();
        others.forEach(other -> other.send(0, Mail.SHRINK.tag(0), asked));
        others.forEach(other -> await(other, 0, Mail.PROPOSAL.tag(0)));
        others.forEach(ControlPlane::drop);
        String said = assertThrows(ExcludedException.class, () -> Ranks.get(zero)).getMessage();
        assertTrue(said.contains("1 of 3 ranks can agree, which is no majority"), said);
    }

    /** An excluded rank can read the files of decisions, so these files must not contain the secret. */
    @Test
    void theSecretOfANewGroupIsNotWritten() throws Exception {
        openWithPlace(3);
        lose(1);
        assertEquals(List.of(List.of(0, 2), List.of(1, 2)), Ranks.onEach(2, each -> shrink(2 * each, LONG)));
        List<Path> written = decisions();
        assertEquals(2, written.size());
        for (Path each : written) {
            Decision decision = Decision.decode(Files.readAllBytes(each));
            assertEquals(2, decision.members().cardinality());
            assertEquals(0, decision.meeting().length);
        }
    }

    private List<Path> decisions() throws Exception {
        try (Stream<Path> files = Files.walk(directory)) {
            return files.filter(Files::isRegularFile).toList();
        }
    }

    @Test
    void aMajorityDecidesIfTheDirectoryOfTheRendezvousIsNotUsable() throws Exception {
        Files.setAttribute(directory, "unix:mode", 0777);
        openWithPlace(2);
        assertNull(recoveries.get(0).place);
    }

    @Test
    void aRankThatIsLostBeforeItJoinsEndsTheWaitOfTheOthers() throws Exception {
        openWithPlace(3);
        FutureTask<List<Integer>> zero = Ranks.async(() -> shrink(0, LONG));
        FutureTask<List<Integer>> one = Ranks.async(() -> shrink(1, LONG));
        ControlPlane two = raw(2, 0);
        two.send(0, Mail.SHRINK.tag(0), new Request(true, 0, -1, new byte[0]).encode());
        assertTrue(Decision.decode(await(two, 0, Mail.DECISION.tag(0))).members().get(2));
        lose(2);
        two.drop();
        assertEquals(List.of(0, 2), Ranks.get(zero));
        assertEquals(List.of(1, 2), Ranks.get(one));
    }

    @Test
    void theProposalOfALostCoordinatorIsAdopted() throws Exception {
        open(Ranks.freeTcp(), 3, Ranks.TIMEOUT);
        FutureTask<Boolean> one = Ranks.async(() -> recoveries.get(1).agree(true));
        FutureTask<Boolean> two = Ranks.async(() -> recoveries.get(2).agree(true));
        ControlPlane zero = raw(0, 0);
        await(zero, 1, Mail.AGREE.tag(0));
        await(zero, 2, Mail.AGREE.tag(0));
        BitSet all = new BitSet();
        all.set(0, 3);
        byte[] proposal = new Decision(Mail.AGREE, false, 1, all).encode();
        zero.send(2, Mail.PROPOSAL.tag(0), proposal);
        await(zero, 2, Mail.ACCEPTANCE.tag(0));
        // ranks 0 and 2 are a majority, so rank 0 may have decided and sent its decision to another rank
        zero.close();
        lose(0);
        assertFalse(Ranks.get(one));
        assertFalse(Ranks.get(two));
    }

    @Test
    void onlyAMajorityContinuesWithoutAPlace() throws Exception {
        open(Ranks.freeTcp(), 5, Ranks.TIMEOUT);
        lose(0, 2);
        List<Integer> living = List.of(1, 3, 4);
        assertEquals(List.of(List.of(0, 3), List.of(1, 3), List.of(2, 3)),
                Ranks.onEach(3, each -> shrink(living.get(each), LONG)));
    }

    /**
     * Rank 1, the coordinator, has a later deadline than its members, as if it had called shrink later. It waits for
     * rank 3, which does not call shrink. The members wait even longer than the coordinator.
     */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aLateCoordinatorKeepsItsMembers(boolean hasPlace) throws Exception {
        open(hasPlace ? "file:" + directory.resolve("group") : Ranks.freeTcp(), 5, Ranks.TIMEOUT);
        lose(0);
        List<Integer> living = List.of(1, 2, 4);
        Duration members = Duration.ofSeconds(2);
        assertEquals(List.of(List.of(0, 3), List.of(1, 3), List.of(2, 3)),
                Ranks.onEach(3, each -> shrink(living.get(each), each == 0 ? members.multipliedBy(2) : members)));
        assertThrows(ExcludedException.class, () -> shrink(3, LONG));
    }

    @Test
    void aMinorityIsRefusedWithoutAPlace() throws Exception {
        open(Ranks.freeTcp(), 4, Ranks.TIMEOUT);
        lose(0, 2);
        for (int rank : List.of(1, 3)) {
            // the lower rank waits for the higher rank, and does not decide without the higher rank
            FutureTask<List<Integer>> task = Ranks.async(() -> shrink(rank, rank == 1 ? SHORT : LONG));
            String said = assertThrows(ExcludedException.class, () -> Ranks.get(task)).getMessage();
            assertTrue(said.contains("1 of 4 ranks can agree, which is no majority"), said);
        }
    }

    @Test
    void oneOfTwoContinuesWithAPlaceAndTheLateOneIsExcluded() throws Exception {
        openWithPlace(2);
        assertEquals(List.of(0, 1), shrink(0, SHORT));
        String said = assertThrows(ExcludedException.class, () -> shrink(1, LONG)).getMessage();
        assertTrue(said.contains("the other ranks continue without it"), said);
    }

    @Test
    void aRankThatAgreesInsteadOfShrinkingDoesNotContinueAlone() throws Exception {
        openWithPlace(2);
        assertEquals(List.of(0, 1), shrink(0, SHORT));
        assertThrows(ExcludedException.class, () -> recoveries.get(1).agree(true));
        assertThrows(ExcludedException.class, () -> shrink(1, LONG));
    }

    @Test
    void aShrinkAfterAMismatchedAgreeAppliesTheDecisionOfTheOthers() throws Exception {
        openWithPlace(2);
        lose(0);
        BitSet one = new BitSet();
        one.set(1);
        recoveries.get(1).place.decide(0, new Decision(Mail.SHRINK, false, 0, one).encode());
        assertThrows(MismatchException.class, () -> recoveries.get(1).agree(true));
        assertThrows(MismatchException.class, () -> recoveries.get(1).agree(true));
        assertEquals(List.of(0, 1), shrink(1, LONG));
        assertEquals(2, decisions().size());
    }

    /** Ranks 0 and 1 see one directory. Rank 2 sees another directory, as on another host. */
    @Test
    void aGroupKeepsTheMajorityOfItsDescent() throws Exception {
        String rendezvous = Ranks.freeTcp();
        List<Path> places = List.of(directory, directory, Files.createDirectory(directory.resolve("other")));
        planes = Ranks.onEach(3, rank -> ControlPlane.join(Rendezvous.parse(rendezvous, options(places.get(rank))),
                rank, 3, options(places.get(rank))));
        recoveries = Ranks.onEach(3, rank -> Recovery.open(planes.get(rank)));
        lose(2);
        List<ControlPlane> made =
                Ranks.onEach(2, rank -> recoveries.get(rank).shrink(LONG, System.nanoTime(), RecoveryTest::completed));
        List<Recovery> descendants = Ranks.onEach(2, rank -> Recovery.open(made.get(rank)));
        descendants.get(1).close();
        lose(0, 1);
        assertThrows(ExcludedException.class,
                () -> descendants.get(0).shrink(SHORT, System.nanoTime(), control -> control).close());
        descendants.get(0).close();
        made.forEach(ControlPlane::close);
    }

    private static JoinOptions options(Path place) {
        return JoinOptions.within(Ranks.TIMEOUT).withPlace(place);
    }

    /** Recoveries of a new group, by rank. */
    private final Map<Integer, Recovery> descendants = new ConcurrentHashMap<>();

    /** Opens a recovery for a new group and completes the group, so that its members can shrink it again. */
    private ControlPlane withRecovery(ControlPlane control, Consumer<ControlPlane> complete) {
        descendants.put(control.rank(), Recovery.open(control));
        complete.accept(control);
        return control;
    }

    /** Closes rank 0 of the new group. The other ranks then shrink the new group. */
    private void shrinkWithoutRankZero(List<ControlPlane> made) throws Exception {
        made.getFirst().close();
        descendants.get(0).close();
        int rest = made.size() - 1;
        assertEquals(Collections.nCopies(rest, rest), Ranks.onEach(rest, each -> {
            try (Recovery own = descendants.get(each + 1);
                    ControlPlane last = own.shrink(LONG, System.nanoTime(), RecoveryTest::completed)) {
                return shape(last).getLast();
            }
        }));
        made.forEach(ControlPlane::close);
    }

    /** Rank 0 decides that the group is complete, and is lost before it tells another rank. */
    @Test
    void aCompleteGroupIsKeptByMembersThatMissedTheDecision() throws Exception {
        openWithPlace(4);
        lose(3);
        List<ControlPlane> made = Ranks.onEach(3, rank -> {
            try (Recovery own = recoveries.get(rank)) {
                return own.shrink(LONG, System.nanoTime(), control -> withRecovery(control, each -> {
                    if (rank == 0) {
                        BitSet all = new BitSet();
                        all.set(0, 3);
                        own.place.decide(1, new Decision(Mail.SHRINK, true, 0, all).encode());
                    } else {
                        each.complete();
                    }
                }));
            }
        });
        assertEquals(List.of(3, 3, 3), made.stream().map(ControlPlane::size).toList());
        shrinkWithoutRankZero(made);
    }

    /**
     * Ranks 0 and 1 already know that the new group is complete. Ranks 2 and 3 are no majority of the five ranks in the
     * old group.
     */
    @Test
    void aCompleteGroupIsKeptByAMinorityThatMissedTheDecision() throws Exception {
        open(Ranks.freeTcp(), 5, Ranks.TIMEOUT);
        lose(4);
        List<ControlPlane> made = Ranks.onEach(4, rank -> {
            try (Recovery own = recoveries.get(rank)) {
                return own.shrink(LONG, System.nanoTime(), control -> withRecovery(control, each -> {
                    if (rank > 1) {
                        each.complete();
                    }
                }));
            }
        });
        assertEquals(List.of(4, 4, 4, 4), made.stream().map(ControlPlane::size).toList());
        shrinkWithoutRankZero(made);
    }

    /** Rank 1 releases its part of the new group. Rank 0 keeps the group. */
    @Test
    void aMemberThatReleasesItsCompletedPartDoesNotContinueAlone() throws Exception {
        openWithPlace(3);
        lose(2);
        FutureTask<List<Integer>> zero = Ranks.async(() -> {
            try (ControlPlane made = recoveries.get(0).shrink(LONG, System.nanoTime(), RecoveryTest::completed)) {
                recoveries.get(0).close();
                return List.of(made.rank(), made.size());
            }
        });
        String said = assertThrows(MillraceException.class,
                () -> recoveries.get(1).shrink(LONG, System.nanoTime(), control -> {
                    try (control) {
                        control.complete();
                        if (control.size() == 2) {
                            throw new MillraceException("rank 1 releases its part");
                        }
                        return control;
                    }
                })).getMessage();
        assertTrue(said.endsWith("rank 1 releases its part"), said);
        assertEquals(List.of(0, 2), Ranks.get(zero));
    }

    @Test
    void aMemberThatStopsBeforeTheGroupIsCompleteIsExcludedAtTheDeadline() throws Exception {
        openWithPlace(3);
        CountDownLatch resumes = new CountDownLatch(2);
        List<Integer> sizes = Ranks.onEach(3, rank -> {
            try (Recovery own = recoveries.get(rank);
                    ControlPlane made = own.shrink(SHORT, System.nanoTime(), control -> {
                        if (rank == 1) {
                            Ranks.await("the others continue", () -> resumes.getCount() == 0);
                        }
                        return completed(control);
                    })) {
                return shape(made).getLast();
            } catch (ExcludedException excluded) {
                return 0;
            } finally {
                resumes.countDown();
            }
        });
        assertEquals(List.of(2, 0, 2), sizes);
    }

    /** Rank 1 asks whether the group is complete. Afterwards the set-up of ranks 0 and 2 fails at its deadline. */
    @Test
    void aMemberThatHasCompletedItsPartWaitsForACoordinatorThatHasNot() throws Exception {
        openWithPlace(3);
        AtomicInteger attempts = new AtomicInteger();
        assertEquals(List.of(List.of(0, 3), List.of(1, 3), List.of(2, 3)), Ranks.onEach(3, rank -> {
            try (Recovery own = recoveries.get(rank);
                    ControlPlane made = own.shrink(SHORT, System.nanoTime(), control -> {
                        try {
                            if (rank != 1 && attempts.incrementAndGet() <= 2) {
                                control.barrier();
                            }
                        } catch (MillraceException e) {
                            control.close();
                            throw e;
                        }
                        return completed(control);
                    })) {
                return shape(made);
            }
        }));
    }

    /**
     * A member may stop waiting for a slow coordinator and ask the next coordinator. The member then also loses its
     * control connection to the slow coordinator.
     */
    @Test
    void aCoordinatorWaitsForAMemberThatHasLeftItAndStillListens() throws Exception {
        openWithPlace(3);
        FutureTask<List<Integer>> zero = Ranks.async(() -> shrink(0, LONG));
        byte[] asked = new Request(false, 0, -1, new byte[0]).encode();
        ControlPlane one = raw(1, 0);
        one.send(0, Mail.SHRINK.tag(0), asked);
        await(one, 0, Mail.WAITING.tag(0));
        one.close();
        ControlPlane two = raw(2, 0);
        two.send(0, Mail.SHRINK.tag(0), asked);
        await(two, 0, Mail.WAITING.tag(0));
        two.close();
        BitSet others = new BitSet();
        others.set(1, 3);
        recoveries.get(1).place.decide(0, new Decision(Mail.SHRINK, false, 0, others).encode());
        assertThrows(ExcludedException.class, () -> Ranks.get(zero));
    }

    /**
     * Ranks 0 to 2 listen, but do not answer rank 3 before the deadline of rank 3. Only rank 4 sends a request to rank
     * 3.
     */
    @Test
    void aMinorityLetsLateCoordinatorsDecideFirst() throws Exception {
        openWithPlace(5);
        List<ControlPlane> late = List.of(raw(0, 0), raw(1, 1), raw(2, 2));
        FutureTask<List<Integer>> three = Ranks.async(() -> shrink(3, SHORT));
        ControlPlane four = raw(4, 3);
        four.send(0, Mail.SHRINK.tag(0), new Request(false, 0, -1, new byte[0]).encode());
        await(four, 0, Mail.WAITING.tag(0));
        BitSet others = new BitSet();
        others.set(0, 3);
        recoveries.get(1).place.decide(0, new Decision(Mail.SHRINK, false, 0, others).encode());
        assertThrows(ExcludedException.class, () -> Ranks.get(three));
        four.close();
        late.forEach(ControlPlane::close);
    }

    @Test
    void allLivingRanksAgreeOnTheSameValue() throws Exception {
        openWithPlace(4);
        for (boolean value : List.of(true, false)) {
            assertEquals(Set.of(value),
                    Set.copyOf(Ranks.onEach(4, rank -> recoveries.get(rank).agree(rank != 1 || value))));
        }
        lose(0, 2);
        for (boolean value : List.of(true, false)) {
            assertEquals(Set.of(value),
                    Set.copyOf(Ranks.onEach(2, each -> recoveries.get(2 * each + 1).agree(each == 0 || value))));
        }
        assertEquals(List.of(List.of(0, 2), List.of(1, 2)), Ranks.onEach(2, each -> shrink(2 * each + 1, LONG)));
    }

    /** Rank 0 has admitted rank 1, and does not read rank 1's requests. */
    @Test
    void aRepeatedAgreeReplacesTheUnreadRequest() throws Exception {
        open("file:" + directory.resolve("group"), 2, SHORT);
        ControlPlane zero = raw(0, 0);
        for (boolean value : List.of(true, true, false)) {
            assertThrows(DeadlineException.class, () -> recoveries.get(1).agree(value));
        }
        zero.await(() -> {
            byte[] last = zero.receive(1, Mail.AGREE.tag(0));
            return last == null || Request.decode(1, last).call() < 3 ? null : last;
        }, Deadline.in(LONG));
        assertFalse(zero.isGone(1));
        zero.close();
    }

    /** The first call of rank 1 has failed, so no other rank knows the value of that call. */
    @Test
    void aRepeatedAgreeDoesNotReplaceTheValueOfTheFirstCall() throws Exception {
        openWithPlace(2);
        FutureTask<Boolean> zero = Ranks.async(() -> recoveries.get(0).agree(true));
        ControlPlane one = raw(1, 0);
        one.send(0, Mail.AGREE.tag(0), new Request(true, 2, -1, new byte[0]).encode());
        assertFalse(Decision.decode(await(one, 0, Mail.DECISION.tag(0))).flag());
        assertFalse(Ranks.get(zero));
        one.close();
    }

    /** The first call of rank 1 fails at its deadline. Rank 0 decides about that call only after the failure. */
    @Test
    void theResultOfAnEarlierCallIsNotTheOneOfALaterCall() throws Exception {
        open("file:" + directory.resolve("group"), 2, SHORT);
        assertThrows(DeadlineException.class, () -> recoveries.get(1).agree(true));
        recoveries.get(0).place.decide(0, new Decision(Mail.AGREE, true, 1, new BitSet()).encode());
        lose(0);
        assertFalse(recoveries.get(1).agree(false));
        assertTrue(recoveries.get(1).agree(true));
    }

    @Test
    void aRankThatMissedADecisionIsAnswered() throws Exception {
        openWithPlace(2);
        byte[] asked = new Request(true, 1, -1, new byte[0]).encode();
        FutureTask<Boolean> first = Ranks.async(() -> recoveries.get(0).agree(false));
        ControlPlane one = raw(1, 0);
        one.send(0, Mail.AGREE.tag(0), asked);
        byte[] decision = await(one, 0, Mail.DECISION.tag(0));
        assertFalse(Ranks.get(first));
        FutureTask<Boolean> second = Ranks.async(() -> recoveries.get(0).agree(true));
        one.send(0, Mail.AGREE.tag(0), asked);
        assertArrayEquals(decision, await(one, 0, Mail.DECISION.tag(0)));
        one.send(0, Mail.AGREE.tag(1), asked);
        await(one, 0, Mail.DECISION.tag(1));
        assertTrue(Ranks.get(second));
        one.close();
    }

    @Test
    void aCoordinatorReadsTheDecisionBeforeItWaits() throws Exception {
        open("file:" + directory.resolve("group"), 2, SHORT);
        recoveries.get(0).place.decide(0, new Decision(Mail.AGREE, false, 1, new BitSet()).encode());
        assertFalse(recoveries.get(0).agree(true));
    }

    /** The deadline of rank 1 is longer than the deadline of its coordinator. */
    @Test
    void aCoordinatorThatIsTooLateTellsItsMembers() throws Exception {
        String rendezvous = Ranks.freeTcp();
        planes = Ranks.onEach(3,
                rank -> ControlPlane.join(rendezvous, rank, 3, rank == 0 ? Duration.ofSeconds(3) : LONG));
        recoveries = Ranks.onEach(3, rank -> Recovery.open(planes.get(rank)));
        List<String> said = Ranks.onEach(2,
                rank -> assertThrows(DeadlineException.class, () -> recoveries.get(rank).agree(true)).getMessage());
        assertEquals("rank 1: the agreement failed at rank 0: rank 2 has not taken part in time", said.get(1));
    }

    @Test
    void aCoordinatorWithoutAMajorityTellsItsMembers() throws Exception {
        open(Ranks.freeTcp(), 4, LONG);
        lose(2, 3);
        Ranks.onEach(2, rank -> assertThrows(ExcludedException.class, () -> recoveries.get(rank).agree(true)));
    }

    @Test
    void anAgreementExcludesNobody() throws Exception {
        open("file:" + directory.resolve("group"), 2, SHORT);
        for (int rank = 0; rank < 2; rank++) {
            Recovery own = recoveries.get(rank);
            String said = assertThrows(DeadlineException.class, () -> own.agree(true)).getMessage();
            assertTrue(said.contains("not taken part in the agreement within 300 ms (MILLRACE_CONNECT_DEADLINE)"),
                    said);
        }
    }

    @Test
    void aCloseEndsTheWaitOfAnotherThread() throws Exception {
        openWithPlace(2);
        FutureTask<Boolean> zero = Ranks.async(() -> recoveries.get(0).agree(true));
        ControlPlane one = raw(1, 0); // rank 0 has admitted this rank, and waits for it
        lose(0);
        assertThrows(AbortedException.class, () -> Ranks.get(zero));
        one.close();
    }
}
