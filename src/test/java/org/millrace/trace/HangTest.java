package org.millrace.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.file.ProcessIdentity;
import org.millrace.trace.ConnectionIdentity.Direction;
import org.millrace.trace.TracedCommunicator.Operation;
import org.millrace.trace.TracedRank.ProcessState;
import org.millrace.trace.Verdict.Cause;

/** Verdicts on fabricated processes. */
class HangTest {

    static final long SECOND = 1_000_000_000L;
    static final long NOW = 1000 * SECOND;
    private static final Duration QUIET = Duration.ofSeconds(1);

    /**
     * Returns one end of a connection. Its proxy has sent or received {@code done} steps, and its device has consumed
     * {@code consumed}.
     */
    private static TracedConnection end(long hash, long key, Direction direction, long done, long consumed,
            long lastChange) {
        return new TracedConnection(0, 1, TracedState.OPEN,
                new ConnectionIdentity(hash, -1, -1, -1, direction, -1, key, key, 0, 0, "shm", "a peer", "a name"), 0,
                lastChange - SECOND, 0, done, 0, done, done, lastChange, -1, consumed, 0, 0, 0, List.of());
    }

    private static TracedProcess process(long pid, int rank, boolean alive, long heartbeat, TracedConnection... ends) {
        return process(Path.of("trace"), new ProcessIdentity(pid, 1, 1), rank, alive, heartbeat, ends);
    }

    private static TracedProcess process(Path file, ProcessIdentity identity, int rank, boolean alive, long heartbeat,
            TracedConnection... ends) {
        return new TracedProcess(file, identity, alive, "host", "a test", rank, 2, false, NOW, heartbeat, 0, 0, 0,
                Map.of(), List.of(), List.of(), List.of(ends), List.of(), List.of(), List.of(), List.of(), List.of());
    }

    /** Returns a living process with an open connection and no heartbeat for eleven seconds. */
    static TracedProcess withoutHeartbeat(Path file, ProcessIdentity identity) {
        return process(file, identity, 0, true, NOW - 11 * SECOND, end(7, 10, Direction.SEND, 3, 0, NOW));
    }

    private static List<Verdict> verdicts(TracedProcess... processes) {
        return Hang.verdicts(List.of(processes), QUIET,
                process -> process.alive() ? ProcessState.RUNNING : ProcessState.DEAD);
    }

    /**
     * Returns two ranks. The first rank has sent three steps, and the second rank has consumed the given number of
     * steps.
     */
    private static TracedProcess[] pair(long hash, long pid, boolean alive, long lastChange, long consumed) {
        return new TracedProcess[] {process(pid, 0, true, NOW, end(hash, pid, Direction.SEND, 3, 0, lastChange)),
                process(pid + 1, 1, alive, alive ? NOW : lastChange,
                        end(hash, pid, Direction.RECEIVE, 3, consumed, lastChange))};
    }

    @Test
    void dataThatIsNotConsumedForLongIsTheReceiversFault() {
        List<Verdict> verdicts = verdicts(pair(7, 10, true, NOW - 2 * SECOND, 1));
        assertEquals(List.of(Cause.NOT_CONSUMED), verdicts.stream().map(Verdict::cause).toList());
        assertEquals(1, verdicts.getFirst().rank());
        assertEquals(0, verdicts.getFirst().peerRank());
    }

    @Test
    void recentOrConsumedDataIsNoStall() {
        assertEquals(List.of(), verdicts(pair(7, 10, true, NOW - SECOND / 2, 1)));
        assertEquals(List.of(), verdicts(pair(7, 10, true, NOW - 20 * SECOND, 3)));
    }

    /** Rank 1 had no core until half a second ago. It may have launched its operation since then. */
    @Test
    void aProcessWithoutACoreIsNotBlamed() {
        TracedProcess[] ranks = pair(7, 10, true, NOW - 2 * SECOND, 1);
        TracedProcess of = ranks[1];
        ranks[1] = new TracedProcess(of.file(), of.identity(), true, of.host(), of.program(), of.rank(), of.size(),
                false, NOW, NOW, NOW - SECOND / 2, 0, 0, of.settings(), of.agents(), of.communicators(),
                of.connections(), of.gin(), of.silences(), of.joins(), of.messages(), of.ports());
        assertEquals(List.of(), verdicts(ranks));
        assertEquals(1, Hang.withoutCore(List.of(ranks), QUIET));
        assertEquals(0, Hang.withoutCore(List.of(pair(7, 10, true, NOW - 2 * SECOND, 1)), QUIET));
    }

    @Test
    void aDeadRankIsNamed() {
        List<Verdict> verdicts = verdicts(pair(7, 10, false, NOW - 2 * SECOND, 1));
        assertEquals(List.of(Cause.GONE), verdicts.stream().map(Verdict::cause).toList());
        assertEquals(1, verdicts.getFirst().rank());
        assertTrue(verdicts.getFirst().sentence().startsWith("Rank 1 (pid 11 on host) is gone: "),
                verdicts.getFirst()::sentence);
    }

    /** The dead rank's last message is a report about another rank. It does not explain the death. */
    @Test
    void theLastMessageOfADeadRankIsNotItsReportAboutOthers() {
        TracedProcess[] ranks = pair(7, 10, false, NOW - 2 * SECOND, 1);
        List<TracedProcess.Message> messages = List.of(new TracedProcess.Message(NOW - 4 * SECOND, "the disk is full"),
                new TracedProcess.Message(NOW - 3 * SECOND, "nothing moves: Rank 0 has not launched"));
        ranks[1] = with(ranks[1], ranks[1].identity(), messages, List.of());
        String sentence = verdicts(ranks).getFirst().sentence();
        assertTrue(sentence.contains("its last message: the disk is full"), sentence);
    }

    /** An ended job and a running job have communicators with equal hashes, or without hashes (tables before v11). */
    @Test
    void deadRanksOfAnotherJobAreNotBlamed() {
        for (long hash : new long[] {0, 7}) {
            TracedProcess[] here = pair(hash, 10, true, NOW - 20 * SECOND, 3);
            TracedProcess earlier = process(20, 1, false, NOW - 300 * SECOND,
                    end(hash, 20, Direction.RECEIVE, 3, 1, NOW - 300 * SECOND));
            List<Verdict> verdicts = verdicts(earlier, here[0], here[1]);
            assertEquals(List.of(Cause.ENDED), verdicts.stream().map(Verdict::cause).toList());
            assertEquals(Set.of(20L), verdicts.getFirst().members());
        }
    }

    @Test
    void theFirstDeadRankIsNamedIfAllAreDead() {
        TracedProcess first = process(10, 0, false, NOW - 9 * SECOND, end(7, 10, Direction.SEND, 3, 0, NOW));
        TracedProcess second = process(11, 1, false, NOW - 4 * SECOND, end(7, 10, Direction.RECEIVE, 3, 1, NOW));
        Verdict verdict = verdicts(first, second).getFirst();
        assertEquals(Cause.ENDED, verdict.cause());
        assertEquals(0, verdict.rank());
        assertTrue(verdict.sentence().contains("left no message; the last was rank 1, 5.0 s after it (9.0 s ago)"),
                verdict.sentence());
    }

    @Test
    void aKilledProcessIsDeadBeforeItsLastThreadHasEnded() {
        String pending = "SigPnd:\t0000000000000000";
        assertEquals(ProcessState.RUNNING, ProcessState.of(List.of("State:\tS (sleeping)", pending), true));
        assertEquals(ProcessState.STOPPED, ProcessState.of(List.of("State:\tT (stopped)", pending), true));
        assertEquals(ProcessState.TRACED, ProcessState.of(List.of("State:\tt (tracing stop)", pending), true));
        assertEquals(ProcessState.DEAD,
                ProcessState.of(List.of("State:\tR (running)", pending, "ShdPnd:\t0000000000000100"), false));
        assertEquals(ProcessState.DEAD, ProcessState.of(List.of("State:\tZ (zombie)", pending), true));
        assertEquals(ProcessState.RUNNING, ProcessState.of(List.of("State:\tZ (zombie)", pending), false));
    }

    @Test
    void aProcessIsFrozenIfItsCgroupIs(@TempDir Path mounted) throws IOException {
        Path unified = Files.createDirectories(mounted.resolve("a/b")).resolve("cgroup.events");
        Path freezer = Files.createDirectories(mounted.resolve("freezer/c")).resolve("freezer.state");
        assertFalse(ProcessState.isFrozen(List.of("0::/a/b"), mounted), "the files cannot be read");
        Files.writeString(unified, "populated 1\nfrozen 0\n");
        Files.writeString(freezer, "THAWED\n");
        List<String> cgroups = List.of("5:cpu,cpuacct:/a/b", "2:freezer:/c", "0::/a/b");
        assertFalse(ProcessState.isFrozen(cgroups, mounted));
        Files.writeString(unified, "populated 1\nfrozen 1\n");
        assertTrue(ProcessState.isFrozen(cgroups, mounted));
        Files.writeString(unified, "populated 1\nfrozen 0\n");
        Files.writeString(freezer, "FROZEN\n");
        assertTrue(ProcessState.isFrozen(cgroups, mounted));
        Path hybrid = Files.createDirectories(mounted.resolve("unified/a/b")).resolve("cgroup.events");
        Files.writeString(hybrid, "populated 1\nfrozen 1\n");
        assertTrue(ProcessState.isFrozen(List.of("0::/a/b"), mounted), "both versions are mounted");
    }

    private static TracedProcess gin(int rank, long taken, long completed, long lastChange) {
        TracedGin context = new TracedGin(7, rank, 2, 3, 128, "", TracedState.OPEN, Map.of(),
                List.of(new TracedGin.Queue(1 - rank, taken, completed, lastChange)));
        return new TracedProcess(Path.of("trace"), new ProcessIdentity(10 + rank, 1, 1), true, "host", "a test", rank,
                2, false, NOW, NOW, 0, 0, 0, Map.of(), List.of(), List.of(), List.of(), List.of(context), List.of(),
                List.of(), List.of(), List.of());
    }

    @Test
    void incompleteDescriptorsAreReported() {
        long then = NOW - 2 * SECOND;
        assertEquals(List.of(), verdicts(gin(0, 5, 5, then), gin(1, 9, 9, then)));
        assertEquals(List.of(), verdicts(gin(0, 5, 4, NOW - SECOND / 2), gin(1, 9, 9, then)));
        Verdict verdict = verdicts(gin(0, 5, 5, then), gin(1, 2, 0xffff_ffffL, then)).getFirst();
        assertEquals(List.of(Cause.WIRE, 1, 0), List.of(verdict.cause(), verdict.rank(), verdict.peerRank()));
        assertTrue(verdict.sentence().contains("GIN, context 3: 3 descriptors are not completed"), verdict.sentence());
    }

    /** The trace files are read one by one, within five seconds. A rank may continue after its file was read. */
    @Test
    void aStallBeganBeforeTheFirstFileWasRead() {
        TracedProcess[] ranks = pair(7, 10, true, NOW - SECOND / 2, 1);
        ranks[1] = readAt(NOW + 5 * SECOND, ranks[1]);
        assertEquals(List.of(), verdicts(ranks));
        ranks = pair(7, 10, true, NOW - SECOND, 1);
        ranks[1] = readAt(NOW + 5 * SECOND, ranks[1]);
        assertEquals(List.of(Cause.NOT_CONSUMED), verdicts(ranks).stream().map(Verdict::cause).toList());
    }

    private static TracedProcess readAt(long read, TracedProcess of) {
        return new TracedProcess(of.file(), of.identity(), of.alive(), of.host(), of.program(), of.rank(), of.size(),
                of.failed(), read, read, of.late(), of.epochMillis(), of.epochNanos(), of.settings(), of.agents(),
                of.communicators(), of.connections(), of.gin(), of.silences(), of.joins(), of.messages(), of.ports());
    }

    private static TracedSilence silence(TracedState state) {
        return new TracedSilence(state, NOW - 12 * SECOND, NOW - SECOND, 4, "10.0.0.1, eth0", "b2 (10.0.0.2)",
                "pid 11 on 10.0.0.2");
    }

    static TracedProcess silent(TracedProcess of, TracedState state) {
        return new TracedProcess(of.file(), of.identity(), of.alive(), of.host(), of.program(), of.rank(), of.size(),
                of.failed(), of.read(), of.heartbeat(), of.late(), of.epochMillis(), of.epochNanos(), of.settings(),
                of.agents(), of.communicators(), of.connections(), of.gin(), List.of(silence(state)), of.joins(),
                of.messages(), of.ports());
    }

    /** The ranks are on two hosts, and only the trace of one host is available. */
    @Test
    void aSilentNetworkIsNamedBeforeItsConsequences() {
        TracedProcess waiting = process(10, 0, true, NOW, end(7, 10, Direction.SEND, 3, 0, NOW - 12 * SECOND),
                end(7, 11, Direction.RECEIVE, 3, 1, NOW - 12 * SECOND));
        assertEquals(List.of(Cause.NOT_CONSUMED), verdicts(waiting).stream().map(Verdict::cause).toList());
        Verdict verdict = verdicts(silent(waiting, TracedState.OPEN)).getFirst();
        assertEquals(List.of(Cause.SILENT, 7L, 0), List.of(verdict.cause(), verdict.hash(), verdict.rank()));
        assertEquals("The network between host (10.0.0.1, eth0) and b2 (10.0.0.2) is silent: nothing comes back on the "
                + "connection of rank 0 (pid 10 on host, running) with pid 11 on 10.0.0.2, the first of 4 over it. "
                + "Nothing has come for 12.0 s", verdict.sentence());
        assertEquals("b2 (10.0.0.2)", verdict.json().get("remote"));
        assertEquals(List.of(Cause.NOT_CONSUMED),
                verdicts(silent(waiting, TracedState.CLOSED)).stream().map(Verdict::cause).toList(), "it is over");
    }

    /** A silent network is reported although no trace shows a waiting rank. */
    @Test
    void aSilentNetworkIsNamedWithoutAStall() {
        TracedProcess idle = process(10, 0, true, NOW, end(7, 10, Direction.SEND, 3, 3, NOW - SECOND / 2));
        assertEquals(List.of(), verdicts(idle));
        List<Verdict> verdicts = verdicts(silent(idle, TracedState.OPEN));
        assertEquals(List.of(Cause.SILENT), verdicts.stream().map(Verdict::cause).toList());
        assertEquals(Set.of(10L), verdicts.getFirst().members());
        assertEquals(List.of(), verdicts(silent(idle, TracedState.FAILED)), "and it was lost, which hurts nobody");
    }

    @Test
    void aSilenceIsReportedAfterItsConnectionIsLost() {
        TracedConnection lost = end(7, 10, Direction.SEND, 3, 0, NOW - 12 * SECOND);
        lost = new TracedConnection(0, 1, TracedState.FAILED, lost.identity(), 0, lost.opened(), NOW - SECOND, 3, 0, 3,
                3, lost.lastChange(), -1, 0, 0, 0, 0, List.of());
        TracedProcess failed = process(10, 0, true, NOW, lost);
        assertEquals(List.of(Cause.CUT), verdicts(failed).stream().map(Verdict::cause).toList());
        Verdict verdict = verdicts(silent(failed, TracedState.FAILED)).getFirst();
        assertEquals(Cause.SILENT, verdict.cause());
        assertTrue(verdict.sentence().contains("b2 (10.0.0.2) was silent until its connections were lost: "),
                verdict.sentence());
        assertEquals(Duration.ofSeconds(11), verdict.still());
    }

    /** The rank continues between two readings of the traces. The verdict of the first reading is then outdated. */
    @Test
    void aVerdictThatTheSecondReadingDoesNotConfirmIsNotReported() throws IOException {
        Deque<List<TracedProcess>> readings = new ArrayDeque<>();
        List<TracedProcess> stands = Arrays.asList(running(1));
        List<TracedProcess> goesOn = Arrays.asList(running(3));
        readings.addAll(List.of(stands, goesOn));
        assertEquals(List.of(), Hang.verdicts(readings::remove, QUIET));
        readings.addAll(List.of(stands, stands));
        assertEquals(List.of(Cause.NOT_CONSUMED),
                Hang.verdicts(readings::remove, QUIET).stream().map(Verdict::cause).toList());
        assertEquals(0, readings.size());
        readings.add(goesOn);
        // Without a verdict the traces are not read again.
        assertEquals(List.of(), Hang.verdicts(readings::remove, QUIET));
    }

    /** Returns an earlier process with this process's number. The earlier process ended during an operation. */
    static TracedProcess endedWithThisNumber() {
        ProcessIdentity here = ProcessIdentity.CURRENT;
        return process(Path.of("trace"), new ProcessIdentity(here.pid(), here.startTicks() - 1, here.namespace()), 0,
                false, NOW - SECOND, end(7, 10, Direction.SEND, 3, 0, NOW - SECOND));
    }

    /** Returns two ranks of this process. Three steps were sent, and the second rank has consumed the given number. */
    static TracedProcess[] running(long consumed) {
        return running(consumed, NOW - 2 * SECOND);
    }

    static TracedProcess[] running(long consumed, long lastChange) {
        TracedProcess[] ranks = pair(7, 10, true, lastChange, consumed);
        for (int rank = 0; rank < ranks.length; rank++) {
            TracedProcess of = ranks[rank];
            ranks[rank] = with(of, ProcessIdentity.CURRENT, List.of(), of.communicators());
        }
        return ranks;
    }

    private static TracedProcess with(TracedProcess of, ProcessIdentity identity, List<TracedProcess.Message> messages,
            List<TracedCommunicator> communicators) {
        return new TracedProcess(of.file(), identity, of.alive(), of.host(), of.program(), of.rank(), of.size(),
                of.failed(), of.read(), of.heartbeat(), of.late(), of.epochMillis(), of.epochNanos(), of.settings(),
                of.agents(), communicators, of.connections(), of.gin(), of.silences(), of.joins(), messages,
                of.ports());
    }

    /**
     * Returns a rank that has launched the broadcasts up to {@code last} and remembers the latest 32. Broadcast
     * {@code wrong} has another size.
     */
    private static TracedProcess broadcasts(int rank, long last, long wrong, int differs, long differsAt) {
        List<Operation> operations = new ArrayList<>();
        for (long number = Math.max(0, last - 31); number <= last; number++) {
            operations.add(new Operation(number, "broadcast", number, 8, number == wrong ? 9 : 8, 4, 1, -1, 0,
                    NOW - 3 * SECOND, 0, 0, 0, 0, ""));
        }
        TracedCommunicator communicator = new TracedCommunicator(7, rank, 3, 1, "", TracedState.FAILED, NOW - SECOND,
                NOW - 2 * SECOND, true, 0, last, last, differs, differsAt, last + 1, null, operations, Map.of());
        TracedProcess bare = process(10 + rank, rank, true, NOW);
        return with(bare, bare.identity(), List.of(), List.of(communicator));
    }

    /** Rank 0 is the root. It is so far ahead that it no longer remembers the operation that the others disagree on. */
    @Test
    void aRankThatIsFarAheadRanTheSameOperationAsTheNext() {
        TracedProcess root = broadcasts(0, 8000, -1, -1, -1);
        assertEquals(List.of(2), ranks(root, broadcasts(1, 15, -1, -1, -1), broadcasts(2, 13, 13, 1, 13)));
        assertEquals(List.of(2), ranks(root, broadcasts(1, 86, -1, -1, -1), broadcasts(2, 13, 13, 1, 13)));
        assertEquals(List.of(1), ranks(root, broadcasts(1, 13, 13, 0, 13), broadcasts(2, 13, -1, -1, -1)));
        assertEquals(List.of(0), ranks(root, broadcasts(1, 13, -1, 0, 13), broadcasts(2, 13, -1, -1, -1)));
        assertEquals(List.of(2), ranks(root, broadcasts(1, 15, -1, -1, -1), broadcasts(2, 13, 13, -1, -1)));
    }

    /**
     * Returns a rank that has begun and ended the given numbers of kernels. It remembers its oldest and its last
     * transfer. {@code differs} is a rank that runs another operation, -1 for none.
     */
    private static TracedProcess transfers(int rank, long begun, long ended, long enqueued, Operation oldest,
            int differs) {
        List<Operation> last = List.of(transfer(enqueued - 1, enqueued - 1, 1 - rank));
        TracedCommunicator communicator = new TracedCommunicator(7, rank, 3, 1, "",
                differs < 0 ? TracedState.OPEN : TracedState.FAILED, NOW - 9 * SECOND, NOW - 3 * SECOND, true, 0, begun,
                ended, differs, -1, enqueued, oldest, last, Map.of());
        TracedProcess bare = process(10 + rank, rank, true, NOW);
        List<TracedProcess.Message> said = List.of(new TracedProcess.Message(NOW - 3 * SECOND,
                "rank 1 <- rank 2: the ranks disagree: rank 1 runs 8 bytes"));
        return with(bare, bare.identity(), differs < 0 ? List.of() : said, List.of(communicator));
    }

    private static Operation transfer(long number, long sequence, int peer) {
        return new Operation(number, "send", sequence, 8, 1, 4, 1, peer, -1, NOW - 4 * SECOND, 0, 0, 0, 0, "");
    }

    @Test
    void endsWithForgottenDifferingOperationsAreBothNamed() {
        TracedProcess bystander = transfers(0, 50, 49, 90, null, -1);
        Verdict verdict =
                verdicts(bystander, transfers(1, 50, 49, 90, null, 2), transfers(2, 50, 49, 90, null, -1)).getFirst();
        assertEquals(List.of(Cause.DISAGREEMENT, 1, 2), List.of(verdict.cause(), verdict.rank(), verdict.peerRank()));
        assertTrue(
                verdict.sentence()
                        .contains("disagrees with rank 2 (pid 12 on host, running) on what they run: rank 1 <- rank 2"),
                verdict.sentence());
        verdict = verdicts(transfers(0, 50, 49, 90, null, 2), transfers(1, 50, 49, 90, null, 2),
                transfers(2, 50, 49, 90, null, 1)).getFirst();
        assertEquals(List.of(Cause.DISAGREEMENT, 2), List.of(verdict.cause(), verdict.rank()));
    }

    /**
     * Ranks 0 and 1 have enqueued many operations behind the running one, but they still remember the running
     * operation.
     */
    @Test
    void aMissingLaunchIsNamedEvenIfItIsFarBack() {
        Verdict verdict = verdicts(transfers(0, 50, 49, 90, transfer(49, 7, 2), -1),
                transfers(1, 50, 49, 90, transfer(49, 3, 0), -1), transfers(2, 20, 20, 20, null, -1)).getFirst();
        assertEquals(List.of(Cause.NOT_LAUNCHED, 2), List.of(verdict.cause(), verdict.rank()));
        assertEquals(7, verdict.operation().sequence());
    }

    /** The dead rank had begun operation 20. Its trace lacks the ends of the operations after the fifth. */
    @Test
    void aDeadRankIsMissingInTheOthersOperation() {
        List<Operation> operations = new ArrayList<>();
        for (long number = 0; number <= 20; number++) {
            operations.add(new Operation(number, "all_reduce", number, 8, 1, 4, 1, -1, -1, NOW - 4 * SECOND + number, 0,
                    0, 0, 0, ""));
        }
        TracedProcess[] ranks = new TracedProcess[2];
        for (int rank = 0; rank < 2; rank++) {
            long ended = rank == 0 ? 20 : 5;
            TracedProcess bare = process(10 + rank, rank, rank == 0, NOW - rank * SECOND);
            ranks[rank] = with(bare, bare.identity(), List.of(),
                    List.of(new TracedCommunicator(7, rank, 2, 1, "", TracedState.OPEN, NOW - 9 * SECOND, 0, true, 0,
                            ended + 1, ended, -1, -1, 21, null, operations, Map.of())));
        }
        Verdict verdict = verdicts(ranks).getFirst();
        assertEquals(List.of(Cause.GONE, 1), List.of(verdict.cause(), verdict.rank()));
        assertEquals(20, verdict.operation().sequence());
    }

    /** Returns a rank that began a connection at least ten seconds ago. {@code polled} is the time of its last poll. */
    static TracedProcess connecting(long pid, long hash, int rank, long polled) {
        TracedProcess of = process(pid, rank, true, NOW);
        TracedJoin join = new TracedJoin(TracedState.OPEN, hash, rank, 0, NOW - (10 + rank) * SECOND, polled, "",
                "a connection waits", new BitSet());
        return new TracedProcess(of.file(), of.identity(), true, of.host(), of.program(), rank, of.size(), false, NOW,
                NOW, 0, 0, 0, of.settings(), of.agents(), of.communicators(), of.connections(), of.gin(), of.silences(),
                List.of(join), of.messages(), of.ports());
    }

    private static List<Cause> causes(TracedProcess... processes) {
        return verdicts(processes).stream().map(Verdict::cause).toList();
    }

    /** Without hashes (tables before v11), a connection that hangs may be unrelated to the verdict on other ranks. */
    @Test
    void aConnectionIsReportedBesideOtherVerdictsWithItsHash() {
        TracedProcess ended =
                process(20, 1, false, NOW - 300 * SECOND, end(0, 20, Direction.RECEIVE, 3, 1, NOW - 300 * SECOND));
        TracedProcess[] other = pair(0, 10, true, NOW - 2 * SECOND, 1);
        assertEquals(List.of(Cause.ENDED, Cause.NOT_CONNECTED), causes(ended, connecting(30, 0, 0, NOW)));
        assertEquals(List.of(Cause.NOT_CONSUMED, Cause.NOT_CONNECTED),
                causes(other[0], other[1], connecting(30, 0, 0, NOW)));
        other = pair(7, 10, true, NOW - 2 * SECOND, 1);
        assertEquals(List.of(Cause.NOT_CONSUMED), causes(other[0], other[1], connecting(30, 7, 2, NOW)));
    }

    /** To abort an attempt to connect, NCCL calls no function of the plugin. It only stops polling. */
    @Test
    void aConnectionThatIsNoLongerPolledIsNotReported() {
        assertEquals(List.of(Cause.NOT_CONNECTED), causes(connecting(30, 7, 0, NOW - 4 * SECOND)));
        assertEquals(List.of(), causes(connecting(30, 7, 0, NOW - 6 * SECOND)));
    }

    /** Returns a rank that reports its kernels, and is in an all-reduce that began four seconds ago. */
    private static TracedProcess inside(int rank, TracedState state, List<TracedProcess.Message> messages,
            TracedConnection... ends) {
        Operation operation =
                new Operation(0, "all_reduce", 0, 8, 1, 4, 1, -1, -1, NOW - 4 * SECOND, NOW - 4 * SECOND, 0, 0, 0, "");
        TracedProcess bare = process(10 + rank, rank, true, NOW, ends);
        return with(bare, bare.identity(), messages, List.of(new TracedCommunicator(7, rank, 2, 1, "", state,
                NOW - 9 * SECOND, NOW - 3 * SECOND, true, 0, 1, 0, -1, -1, 1, null, List.of(operation), Map.of())));
    }

    /** The only rank of this host has posted a receive. The sender's host has no trace here. */
    @Test
    void aRankThatWaitsForAnotherHostNamesIt() {
        Verdict verdict =
                verdicts(inside(0, TracedState.OPEN, List.of(), end(7, 10, Direction.RECEIVE, 3, 3, NOW - 3 * SECOND)))
                        .getFirst();
        assertEquals(List.of(Cause.ELSEWHERE, 0), List.of(verdict.cause(), verdict.rank()));
        assertTrue(
                verdict.sentence()
                        .startsWith("Rank 0 (pid 10 on host, running) waits for ranks of other hosts, all_reduce #0"),
                verdict.sentence());
    }

    @Test
    void aFailedCommunicatorIsReportedWithTheFirstMessageAfterTheFailure() {
        List<TracedProcess.Message> messages = List.of(new TracedProcess.Message(NOW - 5 * SECOND, "an earlier event"),
                new TracedProcess.Message(NOW - 3 * SECOND, "the payload changed in its slot"));
        Verdict verdict =
                verdicts(inside(0, TracedState.OPEN, List.of()), inside(1, TracedState.FAILED, messages)).getFirst();
        assertEquals(List.of(Cause.FAILED, 1), List.of(verdict.cause(), verdict.rank()));
        assertEquals("The communicator of rank 1 (pid 11 on host, running) has failed: the payload changed in its slot",
                verdict.sentence());
    }

    /** If a verdict's rank is known, the verdict states a connection's direction as seen by this rank. */
    @Test
    void aLinkWithoutAKnownRankHasNoDirection() {
        Link link = new Link(null, end(7, 10, Direction.SEND, 3, 0, NOW), null, null);
        Verdict verdict =
                new Verdict(Cause.WIRE, 7, null, null, link, null, "", null, null, 0, Duration.ZERO, Set.of(10L));
        assertNull(verdict.json().get("direction"));
        assertEquals("shm", verdict.json().get("wire"));
    }

    private static List<Integer> ranks(TracedProcess... processes) {
        return verdicts(processes).stream()
                .filter(verdict -> verdict.cause() == Cause.DISAGREEMENT)
                .map(Verdict::rank)
                .toList();
    }
}
