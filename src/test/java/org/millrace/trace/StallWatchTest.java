package org.millrace.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.file.FileName;
import org.millrace.file.ProcessIdentity;
import org.millrace.trace.CommunicatorTrace.TraceName;
import org.millrace.trace.TracedRank.ProcessState;
import org.millrace.trace.Verdict.Cause;

class StallWatchTest {

    /** A check for stalls costs some milliseconds, so no check runs while a process starts and its code is compiled. */
    @Test
    void noLookHappensBeforeAStallIsPossible() {
        Duration quiet = Duration.ofSeconds(10);
        StallWatch watch = new StallWatch(() -> true, () -> true, List::of, quiet, sentence -> {});
        long later = System.nanoTime() + quiet.toNanos();
        assertFalse(watch.isDue(later - quiet.toNanos()));
        assertTrue(watch.isDue(later));
        assertFalse(watch.isDue(later + quiet.toNanos() / 4 - 1));
        assertTrue(watch.isDue(later + quiet.toNanos() / 4));
    }

    @Test
    void anIdleProcessLooksRarelyUntilAnyRankIsInAnOperation(@TempDir Path directory) throws IOException {
        ProcessTrace other = new ProcessTrace(TraceFile.create(directory), true);
        CommunicatorTrace communicator = other.communicator(1, 0, 2, "");
        Duration quiet = Duration.ofSeconds(10);
        StallWatch watch = new StallWatch(() -> true, () -> false, () -> List.of(TraceReader.read(other.path())), quiet,
                sentence -> {});
        long later = System.nanoTime() + quiet.toNanos();
        long quarter = quiet.toNanos() / 4;
        for (int check = 0; check < 11; check++) {
            assertFalse(watch.isDue(later + check * quarter));
        }
        assertTrue(watch.isDue(later + 11 * quarter));
        watch.look(later);
        assertFalse(watch.isDue(later + 12 * quarter));
        communicator.started(communicator.enqueued(TraceName.of("all_reduce"), 0, 8, 2, 7, 1, -1, -1));
        watch.look(later);
        assertTrue(watch.isDue(later + 13 * quarter));
        assertTrue(watch.isDue(later + 14 * quarter));
    }

    @Test
    void aRankMayWaitUnlessEachOperationOfEachCommunicatorHasEnded(@TempDir Path directory) throws IOException {
        ProcessTrace own = new ProcessTrace(TraceFile.create(directory), true);
        assertTrue(StallWatch.Stillness.inOperation(own), "NCCL without its profiler reports no communicator");
        CommunicatorTrace first = own.communicator(1, 0, 2, "");
        assertTrue(StallWatch.Stillness.inOperation(own), "the communicator does not report its kernels");
        first.reportKernels();
        assertFalse(StallWatch.Stillness.inOperation(own));
        CommunicatorTrace second = own.communicator(2, 0, 2, "");
        second.reportKernels();
        long operation = second.enqueued(TraceName.of("all_reduce"), 0, 8, 2, 7, 1, -1, -1);
        assertTrue(StallWatch.Stillness.inOperation(own));
        second.started(operation);
        assertTrue(StallWatch.Stillness.inOperation(own));
        second.ended(operation);
        assertFalse(StallWatch.Stillness.inOperation(own));
        JoinTrace join = own.join(0, 0, 2, System.nanoTime(), "tcp:10.0.0.1:29500", "");
        assertTrue(StallWatch.Stillness.inOperation(own), "a rank joins another group");
        join.close();
        assertFalse(StallWatch.Stillness.inOperation(own));
        own.gin(1, 0, 2, 0, 1, "");
        assertTrue(StallWatch.Stillness.inOperation(own), "kernels put over GIN without an operation");
    }

    /** When a container starts again, its first process gets the number of the earlier first process. */
    @Test
    void theEndOfAnEarlierProcessWithThisNumberIsNotReported() throws IOException {
        List<Verdict> told = new ArrayList<>();
        List<TracedProcess> ended = List.of(HangTest.endedWithThisNumber());
        assertEquals(Cause.ENDED, Hang.verdicts(() -> ended, Duration.ofNanos(4)).getFirst().cause());
        StallWatch watch = new StallWatch(() -> true, () -> true, () -> ended, Duration.ofNanos(4), told::add);
        watch.look(HangTest.NOW);
        assertEquals(List.of(), told);
    }

    /** The time limit of a check is a nanosecond here. Each check exceeds it, as on a machine with few free cores. */
    @Test
    void aVerdictIsReportedHoweverLongTheLookTook() throws IOException {
        List<Verdict> told = new ArrayList<>();
        List<TracedProcess> still = List.of(HangTest.running(1));
        StallWatch watch = new StallWatch(() -> true, () -> true, () -> still, Duration.ofNanos(4), told::add);
        watch.look(HangTest.NOW);
        assertEquals(1, told.size());
        assertTrue(told.getFirst().sentence().contains("does not take what has arrived"), told.getFirst()::sentence);
        watch.look(HangTest.NOW);
        assertEquals(1, told.size());
    }

    /**
     * A directory may contain hundreds of traces of ended processes. Even an idle process checks the directory every
     * few seconds, so it must not read all traces each time.
     */
    @Test
    void theTraceOfAnEndedProcessIsReadAgainOnlyForACommonCommunicator(@TempDir Path directory) throws IOException {
        ProcessIdentity here = ProcessIdentity.CURRENT;
        ProcessIdentity dead = new ProcessIdentity(here.pid(), here.startTicks() + 1, here.namespace());
        ProcessTrace own = new ProcessTrace(TraceFile.create(directory), true);
        own.communicator(1, 0, 2, "common");
        Path common = Files.copy(own.path(), directory.resolve(new FileName(1, dead, FileName.TRACE).toString()));
        ProcessTrace other = new ProcessTrace(TraceFile.create(directory), true);
        other.communicator(2, 0, 2, "of another job");
        Path foreign = Files.copy(other.path(), directory.resolve(new FileName(2, dead, FileName.TRACE).toString()));
        GroupReading reading = new GroupReading(directory, own.path());
        Set<Path> all = Set.of(own.path(), common, other.path(), foreign);
        assertEquals(all, files(reading.read()));
        Set<Path> wanted = Set.of(own.path(), common, other.path());
        assertEquals(wanted, files(reading.read()));
        own.communicator(2, 1, 2, "of both jobs");
        assertEquals(all, files(reading.read()), "a later communicator is the ended process's, too");
        assertEquals(all, files(new GroupReading(directory, own.path()).read()));
    }

    @Test
    void theTraceOfAProcessThatDiedInItsJoinIsReadAgain(@TempDir Path directory) throws IOException {
        ProcessIdentity here = ProcessIdentity.CURRENT;
        ProcessIdentity dead = new ProcessIdentity(here.pid(), here.startTicks() + 1, here.namespace());
        ProcessTrace own = new ProcessTrace(TraceFile.create(directory), true);
        own.join(0, 0, 2, System.nanoTime(), "tcp:10.0.0.1:29500", "");
        Path ended = Files.copy(own.path(), directory.resolve(new FileName(1, dead, FileName.TRACE).toString()));
        GroupReading reading = new GroupReading(directory, own.path());
        assertEquals(Set.of(own.path(), ended), files(reading.read()));
        assertEquals(Set.of(own.path(), ended), files(reading.read()));
    }

    /** The test adds a file, but restores the directory's date. The file is found only after the date changes. */
    @Test
    void anUnchangedDirectoryIsNotListedAgain(@TempDir Path directory) throws IOException {
        ProcessTrace own = new ProcessTrace(TraceFile.create(directory), true);
        FileTime before = FileTime.from(Instant.now().minusSeconds(60));
        Files.setLastModifiedTime(directory, before);
        GroupReading reading = new GroupReading(directory, own.path());
        assertEquals(Set.of(own.path()), files(reading.read()));
        ProcessTrace later = new ProcessTrace(TraceFile.create(directory), true);
        Files.setLastModifiedTime(directory, before);
        assertEquals(Set.of(own.path()), files(reading.read()));
        Set<Path> both = Set.of(own.path(), later.path());
        FileTime now = FileTime.from(Instant.now());
        Files.setLastModifiedTime(directory, now);
        assertEquals(both, files(reading.read()));
        Files.delete(later.path());
        Files.setLastModifiedTime(directory, now);
        assertEquals(Set.of(own.path()), files(reading.read()), "the change may be in the same tick of the clock");
    }

    /** A process updates the date of its trace each minute while it has a communicator. */
    @Test
    void aTraceThatIsOlderThanTheProcessIsNotRead(@TempDir Path directory) throws IOException {
        ProcessTrace own = new ProcessTrace(TraceFile.create(directory), true);
        ProcessTrace other = new ProcessTrace(TraceFile.create(directory), true);
        Files.setLastModifiedTime(other.path(), FileTime.from(Instant.now().minusSeconds(100)));
        ProcessTrace old = new ProcessTrace(TraceFile.create(directory), true);
        Files.setLastModifiedTime(old.path(), FileTime.from(Instant.now().minusSeconds(200)));
        FileTime unchanged = FileTime.from(Instant.now().minusSeconds(60));
        Files.setLastModifiedTime(directory, unchanged);
        GroupReading reading = new GroupReading(directory, own.path());
        assertEquals(Set.of(own.path(), other.path()), files(reading.read()));
        own.communicator(1, 0, 2, "of this process and the old one");
        assertEquals(Set.of(own.path(), other.path()), files(reading.read()));
        old.touch();
        assertEquals(Set.of(own.path(), other.path(), old.path()), files(reading.read()));
    }

    private static Set<Path> files(List<TracedProcess> processes) {
        return processes.stream().map(TracedProcess::file).collect(Collectors.toSet());
    }

    private static List<Cause> told(List<List<TracedProcess>> looks) throws IOException {
        List<Cause> told = new ArrayList<>();
        Deque<List<TracedProcess>> readings = new ArrayDeque<>();
        StallWatch watch = new StallWatch(() -> true, () -> true, readings::remove, Duration.ofSeconds(1),
                verdict -> told.add(verdict.cause()));
        for (List<TracedProcess> look : looks) {
            readings.addAll(List.of(look, look)); // A check reads the traces again if the first reading has a verdict.
            watch.look(HangTest.NOW);
            readings.clear();
        }
        return told;
    }

    /** On a machine with few free cores, a check may miss a stall that the previous check and the next check find. */
    @Test
    void aStallIsReportedOnceUntilSomethingMoves() throws IOException {
        List<TracedProcess> still = List.of(HangTest.running(1));
        List<TracedProcess> nothing = List.of(HangTest.running(3));
        List<TracedProcess> later = List.of(HangTest.running(1, HangTest.NOW - 3 * HangTest.SECOND / 2));
        assertEquals(List.of(Cause.NOT_CONSUMED), told(List.of(still, nothing, still, nothing, still)));
        assertEquals(List.of(Cause.NOT_CONSUMED, Cause.NOT_CONSUMED), told(List.of(still, later, later)));
    }

    /** Two ranks wait to be connected. Both are in one communicator with a hash, or in communicators without a hash. */
    @ParameterizedTest
    @ValueSource(longs = {7, 0})
    void ranksThatConnectAreReportedOnceEach(long hash) {
        TracedProcess first = HangTest.connecting(10, hash, 0, HangTest.NOW);
        TracedProcess second = HangTest.connecting(11, hash, 1, HangTest.NOW);
        for (List<TracedProcess> both : List.of(List.of(first, second), List.of(second, first))) {
            StallWatch.Reported reported = new StallWatch.Reported();
            List<Verdict> verdicts = Hang.verdicts(both, Duration.ofSeconds(1), process -> ProcessState.RUNNING);
            assertEquals(2, verdicts.size());
            for (boolean isNew : List.of(true, false)) {
                verdicts.forEach(verdict -> assertEquals(isNew, reported.add(verdict, HangTest.NOW)));
            }
        }
    }

    @Test
    void communicatorsWithoutAHashAreReportedOnceEach() {
        StallWatch.Reported reported = new StallWatch.Reported();
        for (boolean isNew : List.of(true, false)) {
            for (long pid : new long[] {10, 20}) {
                Verdict verdict = new Verdict(Cause.WIRE, 0, null, null, null, null, "", null, null, HangTest.NOW,
                        Duration.ZERO, Set.of(pid));
                assertEquals(isNew, reported.add(verdict, HangTest.NOW));
            }
        }
    }

    /**
     * Stalled connections over a silent network are part of the reported fault, whether or not the connections are lost
     * already.
     */
    @Test
    void aSilentNetworkIsReportedOnce() throws IOException {
        TracedProcess[] ranks = HangTest.running(1);
        TracedProcess[] idle = HangTest.running(3);
        List<TracedProcess> silent = List.of(HangTest.silent(ranks[0], TracedState.OPEN), ranks[1]);
        List<TracedProcess> before = List.of(HangTest.silent(idle[0], TracedState.OPEN), idle[1]);
        assertEquals(List.of(Cause.SILENT), told(List.of(before, silent, silent, List.of(ranks), silent)));
    }
}
