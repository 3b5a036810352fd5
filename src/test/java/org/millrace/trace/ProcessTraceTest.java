package org.millrace.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import java.util.stream.Collectors;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.file.FileName;
import org.millrace.file.ProcessIdentity;
import org.millrace.trace.CommunicatorTrace.TraceName;
import org.millrace.trace.ConnectionIdentity.Direction;
import org.millrace.trace.ProcessTrace.GinTrace;
import org.millrace.trace.TraceLayout.CommunicatorFields;
import org.millrace.trace.TraceLayout.ConnectionFields;
import org.millrace.trace.TraceLayout.GinFields;
import org.millrace.trace.TracedConnection.Frame;
import org.millrace.trace.TracedConnection.Standing;

/** A reader receives the values that were written to a trace. Other content of the file does not change the values. */
class ProcessTraceTest {

    private static final int SIMPLE = 2;
    private static final long FIRST = (1L << 32) - 3;

    @TempDir
    private Path directory;

    private ProcessTrace trace;

    private @Nullable AgentTrace agent;

    @BeforeEach
    void open() throws IOException {
        trace = new ProcessTrace(TraceFile.create(directory), true);
    }

    private static ConnectionIdentity identity(Direction direction, String peer) {
        return new ConnectionIdentity(0xfeed_0000_0000_0001L, 0, 1, 3, direction, 0, 7, 8, 5, FIRST, "shm", peer,
                "rank 0 -> rank 1, channel 3");
    }

    private TracedProcess read() throws IOException {
        if (agent != null) {
            agent.passed(0);
        }
        return TraceReader.read(trace.path());
    }

    private ConnectionTrace connection(Direction direction) {
        ConnectionTrace made = Objects.requireNonNull(trace.connection(identity(direction, "pid 12")));
        agent = agent == null ? trace.agent("proxy-0") : agent;
        made.servedBy(agent);
        return made;
    }

    @Test
    void aConnectionsCountersAreRead() throws IOException {
        ConnectionTrace connection = connection(Direction.SEND);
        connection.taken(FIRST + 2, 1000, SIMPLE);
        connection.taken(FIRST + 4, 24, 0);
        connection.done(FIRST + 2);
        TracedConnection read = read().connections().getFirst();
        assertEquals(identity(Direction.SEND, "pid 12"), read.identity());
        assertEquals(List.of(2L, 1024L, FIRST + 4, FIRST + 2),
                List.of(read.frames(), read.bytes(), read.taken(), read.done()));
        assertEquals(Standing.UNDER_WAY, read.standing());
        Frame first = read.last().getFirst();
        assertEquals(List.of(0L, FIRST + 2, 1000L, "Simple"),
                List.of(first.number(), first.end(), first.size(), first.protocol()));
        assertTrue(first.done() >= first.taken() && first.taken() > 0, first.toString());
        assertEquals(0, read.last().get(1).done());
        assertEquals("LL", read.last().get(1).protocol());
    }

    @Test
    void theLastFramesAreRemembered() throws IOException {
        ConnectionTrace connection = connection(Direction.RECEIVE);
        int frames = ConnectionFields.FRAMES * 3 + 5;
        for (int frame = 1; frame <= frames; frame++) {
            connection.taken(FIRST + frame, frame, SIMPLE);
            connection.done(FIRST + frame);
        }
        List<Frame> last = read().connections().getFirst().last();
        assertEquals(ConnectionFields.FRAMES - ConnectionFields.FRAMES_AHEAD, last.size(), "others may be overwritten");
        assertEquals(frames - 1, last.getLast().number());
        last.forEach(frame -> assertEquals(frame.number() + 1, frame.size()));
    }

    /**
     * If the trace has no room, a line about a port may be cut at any place. A reader must omit the cut line, because
     * its port number may be incomplete.
     */
    @Test
    void portsAreReadAndPortsWithoutRoomAreOmitted() throws IOException {
        assertEquals(List.of(), read().ports());
        for (int length = 0; length < 40; length++) {
            List<String> ports = new ArrayList<>(List.of("* port 1 (" + "p".repeat(length) + ")"));
            trace.ports(ports);
            assertEquals(ports, read().ports());
            for (int number = 0; number < 40; number++) {
                ports.add("10.0.0.1 port " + (10_000 + number) + " (connections)");
            }
            trace.ports(ports);
            trace.settings(Map.of("MILLRACE_NET", "shm"));
            trace.describe("a program", 1, 2);
            List<String> read = read().ports();
            assertTrue(read.size() >= 15, read::toString);
            assertEquals(ports.subList(0, read.size()), read);
            assertEquals("a program", read().program());
        }
    }

    /**
     * An agent stores a connection's totals with a delay. Until then, the ring of frames contains frames that the
     * totals do not include.
     */
    @Test
    void framesThatAreNotStoredYetAreNotMistakenForOthers() throws IOException {
        ConnectionTrace connection = connection(Direction.SEND);
        // The frames are small, because an agent stores the totals immediately when 64 KiB have passed.
        long frames = 2L * ConnectionFields.FRAMES + 5;
        for (int frame = 1; frame <= frames; frame++) {
            connection.taken(FIRST + frame, frame, SIMPLE);
            connection.done(FIRST + frame);
            TracedConnection read = TraceReader.read(trace.path()).connections().getFirst();
            assertTrue(frame - read.frames() < ConnectionFields.FRAMES_AHEAD, read::toString);
            read.last().forEach(each -> assertEquals(each.number() + 1, each.size()));
        }
        agent.passed(1);
        assertTrue(TraceReader.read(trace.path()).connections().getFirst().frames() < frames);
        agent.passed(0);
        TracedConnection all = TraceReader.read(trace.path()).connections().getFirst();
        assertEquals(List.of(frames, FIRST + frames), List.of(all.frames(), all.done()));
        assertTrue(all.last().stream().allMatch(each -> each.done() - each.taken() >= 0 && each.done() != 0));
    }

    @Test
    void manyConnectionsOfOneAgentAreStored() throws IOException {
        List<ConnectionTrace> many = new ArrayList<>();
        for (int i = 0; i < 50; i++) {
            many.add(connection(Direction.SEND));
        }
        for (int round = 0; round < 2; round++) {
            many.forEach(each -> each.taken(FIRST + 1, 8, SIMPLE));
            many.forEach(each -> each.done(FIRST + 1));
        }
        assertTrue(read().connections().stream().allMatch(each -> each.frames() == 2));
    }

    @Test
    void aConnectionsStateFollowsFromItsCounters() throws IOException {
        ConnectionTrace sends = connection(Direction.SEND);
        assertEquals(Standing.IDLE, read().connections().getFirst().standing());
        sends.blocked(FIRST);
        assertEquals(Standing.NO_ROOM, read().connections().getFirst().standing());
        sends.taken(FIRST + 1, 8, SIMPLE);
        sends.done(FIRST + 1);
        assertEquals(Standing.IDLE, read().connections().getFirst().standing());
        ConnectionTrace receives = connection(Direction.RECEIVE);
        receives.taken(FIRST + 1, 8, SIMPLE);
        receives.done(FIRST + 1);
        assertEquals(Standing.UNCONSUMED, read().connections().get(1).standing());
        receives.blocked(FIRST + 1);
        assertEquals(Standing.DEVICE_FULL, read().connections().get(1).standing());
        receives.consumed(FIRST + 1);
        receives.taken(FIRST + 2, 8, SIMPLE);
        receives.done(FIRST + 2);
        receives.consumed(FIRST + 2);
        assertEquals(Standing.IDLE, read().connections().get(1).standing());
    }

    @Test
    void aRehearsalIsNotVisibleToReaders() throws IOException {
        try (ConnectionTrace rehearsal = trace.rehearsal(true)) {
            rehearsal.servedBy(trace.agent("an agent"));
            rehearsal.taken(2, 1 << 20, 2);
            rehearsal.done(2);
            rehearsal.failed("on purpose");
        }
        assertEquals(List.of(), read().connections());
        assertFalse(read().failed());
        assertTrue(trace.isUneventful());
    }

    @Test
    void theFileGrowsAndClosedBlocksAreReused() throws IOException {
        for (int i = 0; i < 3 * TraceLayout.GROWTH; i++) {
            connection(Direction.SEND);
        }
        assertEquals(3 * TraceLayout.GROWTH, read().connections().size());
        for (int i = 0; i < 1000; i++) {
            connection(Direction.SEND).close();
        }
        TracedProcess read = read();
        assertEquals(3 * TraceLayout.GROWTH,
                read.connections().stream().filter(one -> one.state() == TracedState.OPEN).count());
        assertTrue(read.connections().size() < 200, () -> "blocks: " + read.connections().size());
    }

    @Test
    void operationsMessagesSettingsAndContextsAreRead() throws IOException {
        CommunicatorTrace communicator = Objects.requireNonNull(trace.communicator(77, -1, -1, ""));
        communicator.describe(3, 8, 2, "default_pg");
        for (int i = 0; i < 100; i++) {
            long number = communicator.enqueued(TraceName.of("all_reduce"), 4000 + i, 16 << 20, 4 << 20, 7, 2, -1, -1);
            TraceMemory.set(communicator.entry(number) + CommunicatorFields.CHANNELS_STARTED_OFFSET, 1L << 1);
            if (i < 99) { // in real runs, native code stores this field
                TraceMemory.set(communicator.entry(number) + CommunicatorFields.CHANNELS_ENDED_OFFSET, 1L << 1);
            }
        }
        GinTrace gin = Objects.requireNonNull(trace.gin(77, 3, 8, 1, 128, "context 1"));
        gin.served(GinFields.Kind.PUT, 2);
        gin.queue(7, -1, 4);
        trace.describe("takeover", 3, 8);
        trace.settings(Map.of("NCCL_PROTO", "LL"));
        for (int i = 0; i < 20; i++) {
            trace.message("message " + i);
        }
        TracedProcess read = read();
        TracedCommunicator group = read.communicators().getFirst();
        assertEquals(List.of(3, 8, 2), List.of(group.rank(), group.size(), group.nodes()));
        assertEquals("default_pg", group.name());
        assertEquals(4099, group.last().getLast().sequence());
        assertEquals("all_reduce", group.last().getLast().name());
        assertEquals(List.of(2L, 0L, 2L), List.of(group.last().getLast().channelsStarted(),
                group.last().getLast().channelsEnded(), group.last().get(5).channelsEnded()));
        TracedGin context = read.gin().getFirst();
        assertEquals(2, context.descriptors().get(GinFields.Kind.PUT));
        TracedGin.Queue queue = context.queues().get(7);
        assertEquals(List.of(7, 0xffff_ffffL, 4L), List.of(queue.peer(), queue.taken(), queue.completed()));
        assertTrue(queue.lastChange() > 0);
        assertEquals(Map.of("NCCL_PROTO", "LL"), read.settings());
        assertEquals("takeover", read.program());
        assertEquals("message 19", read.messages().getLast().text());
        assertEquals(TraceLayout.MESSAGES, read.messages().size());
        assertEquals(ProcessIdentity.CURRENT, read.identity());
        assertTrue(read.alive());
    }

    /** An idle agent may sleep 50 ms in each pass, and must not look like an agent that waits for a core. */
    @Test
    void anAgentPublishesItsPassesAfterEachHeartbeat() throws IOException {
        AgentTrace idle = trace.agent("proxy-0");
        for (int passes = 1; passes <= 3; passes++) {
            long before = System.nanoTime();
            trace.beat();
            idle.passed(0);
            TracedProcess.TracedAgent read = read().agents().getFirst();
            assertEquals(passes, read.passes());
            assertTrue(read.clock() - before >= 0);
        }
    }

    @Test
    void theEntryOfAnEndedAgentIsReused() throws IOException {
        for (int i = 0; i < 2 * TraceLayout.MAX_AGENTS; i++) {
            trace.agent("gone").close();
        }
        AgentTrace stays = trace.agent("proxy-0");
        stays.passed(1);
        assertEquals(List.of("proxy-0"), read().agents().stream().map(one -> one.name()).toList());
        assertTrue(read().agents().getFirst().thread() > 0);
        for (int i = 0; i < 2 * TraceLayout.MAX_AGENTS; i++) {
            trace.agent("one of many").passed(0);
        }
        assertEquals(TraceLayout.MAX_AGENTS, read().agents().size());
    }

    @Test
    void otherUsersCannotReadTheFile() throws IOException {
        assertEquals("rw-------", PosixFilePermissions.toString(Files.getPosixFilePermissions(trace.path())));
    }

    @Test
    void textIsSafeForATerminal() throws IOException {
        trace.connection(identity(Direction.SEND, "\u001b]0;gone\u0007\u202eab\n\u0090"));
        trace.message("\u001b[2J" + "ä".repeat(1000));
        TracedProcess read = read();
        assertEquals("?]0;gone??ab\n?", read.connections().getFirst().identity().peerText());
        assertTrue(read.messages().getFirst().text().startsWith("?[2Jää"));
        assertFalse(read.messages().getFirst().text().contains("\ufffd"), "cut between characters");
    }

    @Test
    void flightRecorderReceivesOperationsConnectionsAndLosses() throws IOException {
        CommunicatorTrace communicator = Objects.requireNonNull(trace.communicator(77, 3, 8, "group"));
        communicator.enqueued(TraceName.of("unseen"), 1, 1, 1, 1, 1, -1, -1);
        Path file = directory.resolve("recording.jfr");
        try (Recording recording = new Recording()) {
            recording.enable("millrace.Operation");
            recording.enable("millrace.Connection");
            recording.enable("millrace.Loss");
            recording.enable("millrace.Outage");
            recording.start();
            communicator.enqueued(TraceName.of("all_reduce"), 4933, 16 << 20, 4 << 20, 7, 2, -1, -1);
            connection(Direction.SEND).failed("the peer was lost");
            trace.outage("connection 7", "is restored", 1_000_000);
            recording.stop();
            recording.dump(file);
        }
        Map<String, RecordedEvent> events = RecordingFile.readAllEvents(file)
                .stream()
                .filter(event -> event.getEventType().getName().startsWith("millrace."))
                // Threads that earlier tests have left may report events of their own.
                .filter(event -> event.getThread().getJavaThreadId() == Thread.currentThread().threadId())
                .collect(Collectors.toMap(event -> event.getEventType().getName(), event -> event));
        assertEquals(Set.of("millrace.Operation", "millrace.Connection", "millrace.Loss", "millrace.Outage"),
                events.keySet());
        RecordedEvent operation = events.get("millrace.Operation");
        assertEquals("all_reduce", operation.getString("operation"));
        assertEquals(4933, operation.getLong("sequence"));
        assertNull(operation.getStackTrace());
        assertEquals("pid 12", events.get("millrace.Connection").getString("peer"));
        assertEquals("the peer was lost", events.get("millrace.Loss").getString("reason"));
        assertEquals(Duration.ofMillis(1), events.get("millrace.Outage").getDuration("lasted"));
    }

    /** Another process of the user may write arbitrary bytes. */
    @Test
    void hostileBytesAreHarmless() throws IOException {
        connection(Direction.SEND).taken(FIRST + 1, 8, SIMPLE);
        trace.communicator(1, 0, 1, "").enqueued(TraceName.of("x"), 1, 1, 1, 1, 1, 1, 1);
        trace.gin(1, 0, 4, 0, 16, "g");
        byte[] honest = Files.readAllBytes(trace.path());
        Path hostile = directory.resolve(FileName.ours(99, FileName.TRACE).toString());
        Random random = new Random(15);
        int parsed = 0;
        for (int round = 0; round < 300; round++) {
            byte[] bytes = honest.clone();
            for (int i = 0; i < 1 + random.nextInt(200); i++) {
                int at = TraceLayout.STEPS_OFFSET
                        + random.nextInt(TraceLayout.HEADER_BYTES + 4 * TraceLayout.BLOCK_BYTES);
                ByteBuffer.wrap(bytes)
                        .putLong(Math.min(at, bytes.length - Long.BYTES),
                                random.nextBoolean() ? random.nextLong() : random.nextBoolean() ? -1 : Long.MAX_VALUE);
            }
            int kept = random.nextInt(4) == 0 ? random.nextInt(bytes.length) : bytes.length;
            try (FileChannel channel = FileChannel.open(hostile, StandardOpenOption.CREATE, StandardOpenOption.WRITE,
                    StandardOpenOption.TRUNCATE_EXISTING)) {
                channel.write(ByteBuffer.wrap(bytes, 0, kept));
            }
            try {
                TraceReader.read(hostile).connections().forEach(TracedConnection::standing);
                parsed++;
            } catch (TraceReader.TraceFormatException refused) {
                assertTrue(refused.getMessage().contains(hostile.toString()), refused::getMessage);
            }
        }
        assertTrue(parsed > 100, "most were read: " + parsed);
    }

    @Test
    void anotherFormatIsRefusedByItsNumber() throws IOException {
        TraceMemory.set(trace.header() + TraceLayout.VERSION_OFFSET, 2);
        IOException refused = assertThrows(TraceReader.TraceFormatException.class, this::read);
        assertTrue(refused.getMessage().contains("format 2"), refused::getMessage);
    }

    @Test
    void aProcessThatClosedEverythingLeavesNoFile() {
        assertTrue(trace.isUneventful());
        ConnectionTrace connection = connection(Direction.SEND);
        assertFalse(trace.isUneventful());
        connection.close();
        connection.close();
        assertTrue(trace.isUneventful());
        connection(Direction.SEND).failed("the peer was lost");
        assertFalse(trace.isUneventful());
    }
}
