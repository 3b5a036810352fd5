package org.millrace.rehearsal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.MillraceException;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.rehearsal.RecordedRun.Call;
import org.millrace.rehearsal.RecordedRun.Step;
import org.millrace.trace.ConnectionIdentity;
import org.millrace.trace.ConnectionIdentity.Direction;
import org.millrace.trace.Recorder;

/** A reader can read recorded data, and a recording never exceeds its memory. */
class RecordingTest {

    private static final long HASH = 0xfeed_0000_0000_0001L;
    /** Room for 1024 records. */
    private static final long SMALL = 64 << 10;

    @TempDir
    private Path directory;
    private final List<String> complaints = new ArrayList<>();

    private Recording recording(long bytes) throws IOException {
        return new Recording(directory, bytes, complaints::add);
    }

    private static ConnectionIdentity identity(Direction direction, int rank, int peer, long key) {
        return new ConnectionIdentity(HASH, rank, peer, 3, direction, 0, key, 7, 0, 0, "socket", "10.0.0.2\tport 1",
                "");
    }

    @Test
    void stepsAndOperationsAreReadAsTheyWereWritten() throws Exception {
        Recording recording = recording(SMALL);
        Recorder.Operations group = recording.communicator(HASH, 1, 4, "");
        group.describe(1, 4, 2, "tp");
        Recorder.Steps steps = recording.connection(identity(Direction.SEND, 1, 2, 0));
        steps.served();
        long before = System.nanoTime();
        steps.taken(4, 1000, 2);
        steps.blocked();
        steps.taken(8, 2000, 1);
        steps.done(4);
        steps.done(8);
        long passed = System.nanoTime() - before;
        group.enqueued(0, before, "AllReduce", 0, -1, 256, 7, -1, -1, 5);
        group.enqueued(1, before + 1, "receive", -1, 64, 16, 7, 3, -1, 6);
        group.ran(0, before + 10, before + 40);
        RecordedRun run = RecordingReader.read(directory);
        assertEquals(List.of(), complaints);
        assertEquals(0, run.lost());
        assertFalse(run.truncated());
        assertEquals(1, run.threads());
        assertEquals(2, run.steps().size());
        Step first = run.steps().get(0);
        Step second = run.steps().get(1);
        assertEquals(List.of(4L, 1000L, 2), List.of(first.end(), first.size(), first.protocol()));
        assertEquals(List.of(8L, 2000L, 1), List.of(second.end(), second.size(), second.protocol()));
        assertTrue(first.done() - first.taken() > 0 && second.done() - first.taken() <= passed, run::toString);
        assertEquals(second.taken() - first.taken(), second.idle() + second.blocked(), "nobody's time is left out");
        assertTrue(second.blocked() > 0, run::toString);
        assertEquals(0, first.blocked());
        assertEquals(List.of(1, 2, 3),
                List.of(first.connection().rank(), first.connection().peer(), first.connection().channel()));
        assertEquals("10.0.0.2 port 1", first.connection().peerText());
        assertEquals(2, run.calls().size());
        Call reduce = run.calls().get(0);
        Call receive = run.calls().get(1);
        assertEquals(new RecordedRun.Kind("all_reduce", 1024), reduce.what(), "256 floats");
        assertEquals(List.of(30L, 256L, 5L), List.of(reduce.nanos(), reduce.count(), reduce.launch()));
        assertEquals(List.of(1, 4), List.of(reduce.group().rank(), reduce.group().size()));
        assertEquals(List.of(RecordedRun.RECEIVE, 3, -1, -1L),
                List.of(receive.kind(), receive.peer(), receive.root(), receive.nanos()));
    }

    @Test
    void theOldestRecordsMakeRoom() throws Exception {
        Recording recording = recording(SMALL);
        Recorder.Steps steps = recording.connection(identity(Direction.RECEIVE, 0, 1, 0));
        steps.served();
        int frames = 5000;
        for (int frame = 1; frame <= frames; frame++) {
            steps.taken(frame, frame, 2);
            steps.done(frame);
            recording.prepareOnce();
        }
        RecordedRun run = RecordingReader.read(directory);
        assertTrue(run.truncated());
        assertEquals(0, run.lost());
        long capacity = SMALL / RecordFormat.RECORD_BYTES - 1; // the oldest record is missing
        assertEquals(capacity, run.steps().size());
        assertEquals(frames, run.steps().getLast().end());
        assertEquals(frames - capacity + 1, run.steps().getFirst().end());
        try (Stream<Path> files = Files.list(directory)) {
            assertEquals(2 * (SMALL + RecordFormat.HEADER_BYTES) + 300,
                    files.mapToLong(file -> file.toFile().length()).sum(), 300,
                    "of the thread, of operations, and some lines");
        }
    }

    @Test
    void whatThereIsNoRoomForIsCountedAndNobodyWaits() throws Exception {
        Recording recording = recording(SMALL);
        Recorder.Steps steps = recording.connection(identity(Direction.SEND, 0, 1, 0));
        steps.served();
        for (int frame = 1; frame <= 1000; frame++) { // In this test no thread prepares memory for records.
            steps.taken(frame, 1, 2);
            steps.done(frame);
        }
        RecordedRun run = RecordingReader.read(directory);
        assertTrue(run.lost() > 0, "the fault did not happen");
        assertEquals(1000, run.steps().size() + run.lost());
        assertEquals(1, run.steps().getFirst().end());
    }

    /**
     * A new thread continues the file of an ended thread. Otherwise, a program that repeatedly starts and ends
     * communicators would create more and more files.
     */
    @Test
    void aThreadTakesTheFileOfOneThatHasEnded() throws Exception {
        Recording recording = recording(SMALL);
        for (int thread = 0; thread < 5; thread++) {
            Recorder.Steps steps = recording.connection(identity(Direction.SEND, 0, 1, 0));
            Thread started = Thread.ofPlatform().start(() -> {
                steps.served();
                steps.taken(1, 1, 2);
                steps.done(1);
            });
            started.join();
            recording.prepareOnce();
        }
        assertEquals(5, RecordingReader.read(directory).steps().size());
        try (Stream<Path> files = Files.list(directory)) {
            assertEquals(2, files.filter(file -> file.toString().endsWith(RecordFormat.SUFFIX)).count());
        }
    }

    /** Under libnccl, an end does not know its peer's rank. A reader pairs ends by properties that both record. */
    @Test
    void peersAreFoundByWhatBothEndsHaveInCommon() throws Exception {
        for (int rank = 0; rank < 2; rank++) {
            Recording recording = recording(SMALL);
            recording.communicator(HASH, rank, 2, "").describe(rank, 2, 2, "");
            Recorder.Steps steps =
                    recording.connection(identity(rank == 0 ? Direction.SEND : Direction.RECEIVE, -1, -1, 99));
            steps.served();
            steps.taken(1, 1, 2);
            steps.done(1);
        }
        RecordedRun run = RecordingReader.read(directory);
        assertEquals(2, run.steps().size());
        for (Step step : run.steps()) {
            assertEquals(step.connection().sends() ? 0 : 1, step.connection().rank());
            assertEquals(step.connection().sends() ? 1 : 0, step.connection().peer());
        }
    }

    @Test
    void whatIsNoRecordingIsToldWithWhatToDo() throws Exception {
        String none = assertThrows(MillraceException.class, () -> RecordingReader.read(directory)).getMessage();
        assertTrue(none.contains("MILLRACE_RECORD=" + directory), none);
        recording(SMALL);
        Path records;
        try (Stream<Path> files = Files.list(directory)) {
            records = files.filter(file -> file.toString().endsWith(RecordFormat.SUFFIX)).findFirst().orElseThrow();
        }
        try (FileChannel channel = FileChannel.open(records, StandardOpenOption.WRITE)) {
            channel.truncate(RecordFormat.HEADER_BYTES + RecordFormat.RECORD_BYTES);
        }
        String damaged = assertThrows(MillraceException.class, () -> RecordingReader.read(directory)).getMessage();
        assertTrue(damaged.contains(records.toString()) && damaged.contains("damaged"), damaged);
    }

    @Test
    void aRecordingWithoutATraceIsRefusedByName() {
        String refused = assertThrows(ConfigurationException.class, () -> Configuration.load(Map.of(), new Properties(),
                Map.of("MILLRACE_RECORD", "/tmp/r", "MILLRACE_TRACE", "off"))).getMessage();
        assertTrue(refused.contains("MILLRACE_RECORD") && refused.contains("MILLRACE_TRACE=off"), refused);
    }
}
