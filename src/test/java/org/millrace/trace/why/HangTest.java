package org.millrace.trace.why;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.millrace.file.ProcessIdentity;
import org.millrace.trace.ConnectionIdentity;
import org.millrace.trace.ConnectionIdentity.Direction;
import org.millrace.trace.reader.TracedConnection;
import org.millrace.trace.reader.TracedProcess;
import org.millrace.trace.reader.TracedState;
import org.millrace.trace.why.Verdict.Cause;

/** Verdicts on processes that are made up. */
class HangTest {

    private static final long SECOND = 1_000_000_000L;
    private static final long NOW = 1000 * SECOND;
    private static final Duration QUIET = Duration.ofSeconds(1);

    /** One end of a connection that has sent, or been given, so many steps, and used so many. */
    private static TracedConnection end(long hash, long key, Direction direction, long done, long consumed,
            long lastChange) {
        return new TracedConnection(0, 1, TracedState.OPEN,
                new ConnectionIdentity(hash, -1, -1, -1, direction, -1, key, key, 0, 0, "shm", "a peer", "a name"), 0,
                lastChange - SECOND, 0, done, 0, done, done, lastChange, -1, consumed, 0, 0, 0, -1, List.of());
    }

    private static TracedProcess process(long pid, int rank, boolean alive, long heartbeat, TracedConnection... ends) {
        return new TracedProcess(Path.of("trace"), new ProcessIdentity(pid, 1, 1), alive, "host", "a test", rank, 2,
                false, NOW, heartbeat, 0, 0, 0, Map.of(), List.of(), List.of(), List.of(ends), List.of(), List.of());
    }

    private static List<Verdict> verdicts(TracedProcess... processes) {
        return Hang.verdicts(List.of(processes), QUIET,
                process -> process.alive() ? ProcessState.RUNNING : ProcessState.DEAD);
    }

    /** Two ranks of which the second does not take what the first sends, if it has used less than three steps. */
    private static TracedProcess[] pair(long hash, long pid, boolean alive, long lastChange, long consumed) {
        return new TracedProcess[] {process(pid, 0, true, NOW, end(hash, pid, Direction.SEND, 3, 0, lastChange)),
                process(pid + 1, 1, alive, alive ? NOW : lastChange,
                        end(hash, pid, Direction.RECEIVE, 3, consumed, lastChange))};
    }

    @Test
    void whatHasNotBeenUsedForLongIsTheReceiversMatter() {
        List<Verdict> verdicts = verdicts(pair(7, 10, true, NOW - 2 * SECOND, 1));
        assertEquals(List.of(Cause.NOT_CONSUMED), verdicts.stream().map(Verdict::cause).toList());
        assertEquals(1, verdicts.getFirst().rank());
        assertEquals(0, verdicts.getFirst().peerRank());
    }

    @Test
    void whatHasJustMovedOrIsUsedStandsStillForNobody() {
        assertEquals(List.of(), verdicts(pair(7, 10, true, NOW - SECOND / 2, 1)));
        assertEquals(List.of(), verdicts(pair(7, 10, true, NOW - 20 * SECOND, 3)));
    }

    @Test
    void aRankThatHasDiedIsNamed() {
        List<Verdict> verdicts = verdicts(pair(7, 10, false, NOW - 2 * SECOND, 1));
        assertEquals(List.of(Cause.GONE), verdicts.stream().map(Verdict::cause).toList());
        assertEquals(1, verdicts.getFirst().rank());
    }

    /** It saw before that the other one did not launch: that is not why it died. */
    @Test
    void theLastWordsOfTheDeadAreNotWhatTheySaidOfOthers() {
        TracedProcess[] ranks = pair(7, 10, false, NOW - 2 * SECOND, 1);
        List<TracedProcess.Message> messages = List.of(new TracedProcess.Message(NOW - 4 * SECOND, "the disk is full"),
                new TracedProcess.Message(NOW - 3 * SECOND, "nothing moves: Rank 0 has not launched"));
        TracedProcess dead = ranks[1];
        ranks[1] = new TracedProcess(dead.file(), dead.identity(), false, dead.host(), dead.program(), dead.rank(),
                dead.size(), dead.failed(), dead.read(), dead.heartbeat(), dead.late(), dead.epochMillis(),
                dead.epochNanos(), dead.settings(), dead.agents(), dead.communicators(), dead.connections(), dead.gin(),
                messages);
        String sentence = verdicts(ranks).getFirst().sentence();
        assertTrue(sentence.contains("its last words: the disk is full"), sentence);
    }

    /** A job that died before this one began had the same hash; tables before v11 have none at all. */
    @Test
    void theDeadOfAnotherJobAreNotBlamed() {
        for (long hash : new long[] {0, 7}) {
            TracedProcess[] here = pair(hash, 10, true, NOW - 20 * SECOND, 3);
            TracedProcess earlier = process(20, 1, false, NOW - 300 * SECOND,
                    end(hash, 20, Direction.RECEIVE, 3, 1, NOW - 300 * SECOND));
            assertEquals(List.of(), verdicts(earlier, here[0], here[1]));
        }
    }
}
