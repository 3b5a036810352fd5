package org.millrace.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.millrace.trace.Verdict.Cause;

class StallWatchTest {

    /** A look takes some milliseconds from a starting process and from the compiler. */
    @Test
    void noLookHappensBeforeAStallIsPossible() {
        Duration quiet = Duration.ofSeconds(10);
        StallWatch watch = new StallWatch(() -> true, List::of, quiet, sentence -> {});
        long later = System.nanoTime() + quiet.toNanos();
        assertFalse(watch.isDue(later - quiet.toNanos()));
        assertTrue(watch.isDue(later));
        assertFalse(watch.isDue(later + quiet.toNanos() / 4 - 1));
        assertTrue(watch.isDue(later + quiet.toNanos() / 4));
    }

    /** Every look takes longer than a nanosecond. Where cores are scarce, looks take longer than any limit. */
    @Test
    void aVerdictIsReportedHoweverLongTheLookTook() throws IOException {
        List<Verdict> told = new ArrayList<>();
        List<TracedProcess> still = List.of(HangTest.running(1));
        StallWatch watch = new StallWatch(() -> true, () -> still, Duration.ofNanos(4), told::add);
        watch.look(HangTest.NOW);
        assertEquals(1, told.size());
        assertTrue(told.getFirst().sentence().contains("does not take what has arrived"), told.getFirst()::sentence);
        watch.look(HangTest.NOW);
        assertEquals(1, told.size());
    }

    private static List<Cause> told(List<List<TracedProcess>> looks) throws IOException {
        List<Cause> told = new ArrayList<>();
        Deque<List<TracedProcess>> readings = new ArrayDeque<>();
        StallWatch watch = new StallWatch(() -> true, readings::remove, Duration.ofSeconds(1),
                verdict -> told.add(verdict.cause()));
        for (List<TracedProcess> look : looks) {
            readings.addAll(List.of(look, look)); // each look reads twice if the first reading has a verdict
            watch.look(HangTest.NOW);
            readings.clear();
        }
        return told;
    }

    /** Where cores are scarce, a look may find nothing, and the next look may find the same stall again. */
    @Test
    void aStallIsReportedOnceUntilSomethingMoves() throws IOException {
        List<TracedProcess> still = List.of(HangTest.running(1));
        List<TracedProcess> nothing = List.of(HangTest.running(3));
        List<TracedProcess> later = List.of(HangTest.running(1, HangTest.NOW - 3 * HangTest.SECOND / 2));
        assertEquals(List.of(Cause.NOT_CONSUMED), told(List.of(still, nothing, still, nothing, still)));
        assertEquals(List.of(Cause.NOT_CONSUMED, Cause.NOT_CONSUMED), told(List.of(still, later, later)));
    }

    /** Connections that the silent network stops belong to the same stall, before and after they are lost. */
    @Test
    void aSilentNetworkIsReportedOnce() throws IOException {
        TracedProcess[] ranks = HangTest.running(1);
        TracedProcess[] idle = HangTest.running(3);
        List<TracedProcess> silent = List.of(HangTest.silent(ranks[0], TracedState.OPEN), ranks[1]);
        List<TracedProcess> before = List.of(HangTest.silent(idle[0], TracedState.OPEN), idle[1]);
        assertEquals(List.of(Cause.SILENT), told(List.of(before, silent, silent, List.of(ranks), silent)));
    }
}
