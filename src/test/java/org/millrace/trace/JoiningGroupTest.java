package org.millrace.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.BitSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.file.ProcessIdentity;
import org.millrace.trace.TracedRank.ProcessState;

/** The traces explain why ranks wait in a join. */
class JoiningGroupTest {

    private static final String WHERE = "tcp:10.0.0.1:29500";
    private static final int LARGE = 40_000;

    @TempDir
    private Path directory;

    private ProcessTrace trace;

    @BeforeEach
    void open() throws IOException {
        trace = new ProcessTrace(TraceFile.create(directory), true);
    }

    private JoinTrace join(int rank, int size, int... missing) {
        JoinTrace join = trace.join(0, rank, size, System.nanoTime(), WHERE, "");
        join.missing(IntStream.of(missing).collect(BitSet::new, BitSet::set, BitSet::or));
        return join;
    }

    private List<Verdict> verdicts(Duration quiet) throws IOException {
        return Hang.verdicts(() -> List.of(TraceReader.read(trace.path())), quiet);
    }

    private String sentence() throws IOException {
        List<Verdict> verdicts = verdicts(Duration.ZERO);
        assertEquals(1, verdicts.size(), verdicts::toString);
        String self = "(pid " + ProcessIdentity.CURRENT.pid() + " on " + ProcessIdentity.HOST + ", running)";
        return verdicts.getFirst().sentence().replace(self, "(SELF)").replaceFirst("\\. Nothing has moved for .*", "");
    }

    @Test
    void aCallThatIsNeverPolledIsNotGivenUp() throws IOException {
        JoinTrace call = trace.join(7, 0, 0, System.nanoTime(), "", "ncclCommInitRank waits");
        long later = System.nanoTime() + Duration.ofHours(1).toNanos();
        assertTrue(TraceReader.read(trace.path()).joins().getFirst().isPolled(later));
        assertEquals("Rank 0 (SELF) has not connected: ncclCommInitRank waits", sentence());
        call.activity("a connection waits");
        assertFalse(TraceReader.read(trace.path()).joins().getFirst().isPolled(later), "NCCL polls it no longer");
    }

    @Test
    void missingRanksAreNamedToTheRanksThatWait() throws IOException {
        join(0, 7, 3, 5, 6);
        join(1, 7, 3, 4, 5, 6); // This rank has not learned yet that rank 4 has joined.
        assertEquals("Ranks 3, 5 to 6 have not joined: ranks 0 to 2, 4 wait at " + WHERE, sentence());
        Verdict verdict = verdicts(Duration.ZERO).getFirst();
        assertEquals(List.of("not joined", 3L, 0L, WHERE, List.of(3, 5, 6)),
                List.of(verdict.json().get("verdict"), verdict.json().get("rank"), verdict.json().get("peer"),
                        verdict.json().get("remote"), verdict.json().get("missing")));
        assertEquals(null, verdict.json().get("pid"));
        assertTrue(verdict.concerns(List.of(ProcessIdentity.CURRENT.pid())));
        assertTrue(verdicts(Duration.ofHours(1)).isEmpty(), "the ranks have not waited for an hour");
    }

    @Test
    void theActivityOfAMissingRankIsQuoted() throws IOException {
        join(0, 2, 1);
        JoinTrace one = join(1, 2, 0, 1);
        one.activity("cannot join: Connection refused: no process listens at 10.0.0.2:29500");
        assertEquals(
                "Rank 1 has not joined: rank 0 waits at " + WHERE
                        + "; rank 1 (SELF) cannot join: Connection refused: no process listens at 10.0.0.2:29500",
                sentence());
        assertEquals(ProcessIdentity.CURRENT.pid(), verdicts(Duration.ZERO).getFirst().json().get("pid"));
    }

    @Test
    void aRankThatDoesNotReachRankZeroIsNamed() throws IOException {
        join(1, 3, 0, 1, 2).activity("connects to rank 0 at 10.0.0.1:29500");
        join(2, 3, 0, 1, 2).activity("connects to rank 0 at 10.0.0.1:29500");
        assertEquals("Rank 1 (SELF) connects to rank 0 at 10.0.0.1:29500 (group at " + WHERE + ")", sentence());
    }

    @Test
    void aRankThatTwoProcessesClaimIsNamed() throws IOException {
        join(0, 3, 1, 2);
        ProcessTrace first = trace;
        open();
        join(0, 3, 1, 2);
        Verdict verdict = Hang
                .verdicts(() -> List.of(TraceReader.read(first.path()), TraceReader.read(trace.path())), Duration.ZERO)
                .getFirst();
        String zero = "rank 0 (pid " + ProcessIdentity.CURRENT.pid() + " on " + ProcessIdentity.HOST + ")";
        assertTrue(verdict.sentence().contains("; processes with the same rank: " + zero + ", " + zero),
                verdict::sentence);
    }

    /** Returns the verdicts if one process has the given state and all other processes run. */
    private static List<Verdict> verdicts(ProcessTrace other, ProcessTrace changed, ProcessState state)
            throws IOException {
        return verdicts(other, TraceReader.read(changed.path()), state);
    }

    private static List<Verdict> verdicts(ProcessTrace other, TracedProcess halted, ProcessState state)
            throws IOException {
        return Hang.verdicts(List.of(TraceReader.read(other.path()), halted), Duration.ZERO,
                each -> each == halted ? state : ProcessState.RUNNING);
    }

    @ParameterizedTest
    @CsvSource({"DEAD, not joined, 'Rank 1 has not joined: rank 0 waits at WHERE; rank 1 (PID, dead) connects'",
            "STOPPED, stopped, 'Rank 1 (PID) is stopped (SIGCONT continues it): rank 1 has not joined: rank 0 waits'"})
    void aRankThatIsDeadOrStoppedInItsJoinIsNamed(ProcessState state, String cause, String begin) throws IOException {
        ProcessTrace first = trace;
        join(0, 3, 1, 2);
        open();
        join(1, 3, 0, 1, 2).activity("connects to rank 0");
        join(2, 3, 0, 1, 2).activity("connects to rank 0");
        List<Verdict> verdicts = verdicts(first, trace, state);
        assertEquals(1, verdicts.size(), verdicts::toString);
        String pid = "pid " + ProcessIdentity.CURRENT.pid() + " on " + ProcessIdentity.HOST;
        String expected = begin.replace("WHERE", WHERE)
                .replace("PID", pid)
                .replace("Rank 1 has", "Ranks 1 to 2 have")
                .replace("rank 1 has", "ranks 1 to 2 have");
        assertTrue(verdicts.getFirst().sentence().startsWith(expected), () -> verdicts + expected);
        assertEquals(List.of(cause, 1L, ProcessIdentity.CURRENT.pid()),
                List.of(verdicts.getFirst().json().get("verdict"), verdicts.getFirst().json().get("rank"),
                        verdicts.getFirst().json().get("pid")));
    }

    /** The verdict names rank 0. It ignores the list of missing ranks that rank 0 wrote before it stopped or died. */
    @ParameterizedTest
    @CsvSource({"DEAD, 'Rank 0 (PID, dead) has'",
            "STOPPED, 'Rank 0 (PID) is stopped (SIGCONT continues it): rank 0 (PID, stopped) has'"})
    void aDeadOrStoppedRankZeroIsNamed(ProcessState state, String begin) throws IOException {
        join(0, 3, 1, 2);
        ProcessTrace zero = trace;
        open();
        zero.beat(); // rank 0 died after rank 1 had started
        join(1, 3, 0, 1, 2).activity("connects to rank 0");
        List<Verdict> verdicts = verdicts(trace, zero, state);
        assertEquals(1, verdicts.size(), verdicts::toString);
        String pid = "pid " + ProcessIdentity.CURRENT.pid() + " on " + ProcessIdentity.HOST;
        String expected = begin.replace("PID", pid) + " not completed its join (group at " + WHERE + ")";
        assertTrue(verdicts.getFirst().sentence().startsWith(expected), () -> verdicts + expected);
    }

    @Test
    void deadProcessesOfTheSameRankDoNotClaimIt() throws IOException {
        join(0, 3, 1, 2);
        ProcessTrace zero = trace;
        open();
        join(1, 3, 0, 1, 2).activity("connects to rank 0");
        ProcessTrace first = trace;
        open();
        join(1, 3, 0, 1, 2).activity("connects to rank 0");
        TracedProcess living = TraceReader.read(zero.path());
        List<Verdict> verdicts =
                Hang.verdicts(List.of(living, TraceReader.read(first.path()), TraceReader.read(trace.path())),
                        Duration.ZERO, each -> each == living ? ProcessState.RUNNING : ProcessState.DEAD);
        assertEquals(1, verdicts.size(), verdicts::toString);
        assertTrue(!verdicts.getFirst().sentence().contains("the same rank"), verdicts::toString);
    }

    @ParameterizedTest
    @CsvSource({"GONE, 0", "STOPPED, 0", "NOT_CONNECTED, 0", "NOT_LAUNCHED, 1"})
    void aGroupOfAnotherVerdictsProcessesIsLeftOut(Verdict.Cause cause, int expected) throws IOException {
        join(0, 2, 1);
        Verdict told = new Verdict(cause, 1, null, null, null, null, "", null, null, 0, Duration.ZERO,
                Set.of(ProcessIdentity.CURRENT.pid()));
        assertEquals(expected,
                JoiningGroup
                        .verdicts(List.of(TraceReader.read(trace.path())), _ -> ProcessState.RUNNING, Duration.ZERO,
                                List.of(told))
                        .size());
    }

    /**
     * The test's own process plays the dead process, so heartbeats in the old trace continue. The test therefore reads
     * this trace before it creates the new trace.
     */
    @Test
    void aDeadRankThatWasReplacedOrOfAnEarlierAttemptIsNotNamed() throws IOException {
        join(1, 2, 0, 1);
        ProcessTrace dead = trace;
        TracedProcess earlier = TraceReader.read(dead.path());
        open();
        JoinTrace zero = join(0, 2, 1);
        assertTrue(!verdicts(trace, earlier, ProcessState.DEAD).getFirst().sentence().contains("dead"), "earlier");
        zero.close();
        assertEquals(List.of(), verdicts(trace, earlier, ProcessState.DEAD), "no rank waits");
        join(1, 2, 0, 1);
        dead.beat();
        assertTrue(!verdicts(trace, dead, ProcessState.DEAD).getFirst().sentence().contains("dead"), "replaced");
    }

    @Test
    void aJoinThatHasEndedIsNoStall() throws IOException {
        JoinTrace zero = join(0, 2, 1);
        zero.close();
        zero.missing(new BitSet());
        zero.activity("is not stored any longer");
        assertEquals(List.of(), verdicts(Duration.ZERO));
        join(0, 2).missing(new BitSet());
        assertEquals(List.of(), verdicts(Duration.ZERO), "the group is complete");
    }

    /** A group that has more ranks than a block of the trace has bits. */
    @Test
    void theRanksOfALargeGroupAreNamed() throws IOException {
        join(0, LARGE, 64, 1000, LARGE - 1);
        assertTrue(sentence().startsWith("Ranks 64, 1000 have not joined: ranks 0 to 63, 65 to 999, 1001 to "),
                sentence());
    }
}
