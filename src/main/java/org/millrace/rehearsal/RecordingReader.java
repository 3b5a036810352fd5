package org.millrace.rehearsal;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;
import org.millrace.MillraceException;
import org.millrace.rehearsal.RecordedRun.Call;
import org.millrace.rehearsal.RecordedRun.Connection;
import org.millrace.rehearsal.RecordedRun.Group;
import org.millrace.rehearsal.RecordedRun.Process;
import org.millrace.rehearsal.RecordedRun.Step;

/**
 * Reads the recordings in a directory. The processes that wrote them may have been killed, or may still be writing.
 */
public final class RecordingReader {

    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle ACQUIRED = LONG.varHandle();
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN);

    private final List<Process> processes = new ArrayList<>();
    private final List<Step> steps = new ArrayList<>();
    private final List<Call> calls = new ArrayList<>();
    private final Map<String, List<Connection>> byKey = new HashMap<>();
    private final boolean wantsSteps;
    private long lost;
    private boolean truncated;
    private final Set<Connection> connections = new LinkedHashSet<>();
    private int threads;

    private RecordingReader(boolean wantsSteps) {
        this.wantsSteps = wantsSteps;
    }

    /** Reads all recordings of a directory, including steps, see {@link #read(Path, boolean)}. */
    public static RecordedRun read(Path directory) {
        return read(directory, true);
    }

    /**
     * @param steps whether to read steps, which may be millions
     * @throws MillraceException if the directory has no recording, or if a recording cannot be read; the message names
     *                           the file and the remedy
     */
    public static RecordedRun read(Path directory, boolean steps) {
        RecordingReader reader = new RecordingReader(steps);
        if (!Files.isDirectory(directory)) {
            throw new MillraceException(
                    "there is no directory " + directory + "; MILLRACE_RECORD=DIR makes a recording");
        }
        try (Stream<Path> all = Files.list(directory)) {
            List<Path> files = all.filter(file -> named(file).startsWith(RecordFormat.PREFIX)).sorted().toList();
            List<Definitions> read = new ArrayList<>();
            for (Path file : files) {
                if (named(file).endsWith(RecordFormat.DEFINITIONS_SUFFIX)) {
                    read.add(reader.new Definitions(file));
                }
            }
            if (read.isEmpty()) {
                throw new MillraceException(
                        directory + " has no recording; run something with MILLRACE_RECORD=" + directory);
            }
            reader.namePeers(read);
            for (Definitions each : read) {
                int withSteps = 0;
                for (Path file : files) {
                    if (named(file).startsWith(each.name + "-") && named(file).endsWith(RecordFormat.SUFFIX)) {
                        int before = reader.steps.size();
                        each.read(file);
                        withSteps += reader.steps.size() > before ? 1 : 0;
                    }
                }
                reader.threads = Math.max(reader.threads, withSteps);
                if (!steps) {
                    reader.connections.addAll(each.connections.values());
                }
                each.addCalls();
            }
        } catch (IOException unread) {
            throw new MillraceException(directory + " cannot be read: " + unread, unread);
        }
        reader.steps.sort(Comparator.comparingLong(Step::taken));
        reader.calls.sort(Comparator.comparingLong(Call::enqueued));
        reader.steps.forEach(step -> reader.connections.add(step.connection()));
        return new RecordedRun(reader.processes, reader.steps, reader.calls, reader.lost, reader.truncated,
                List.copyOf(reader.connections), reader.threads);
    }

    private static String named(Path file) {
        return String.valueOf(file.getFileName());
    }

    /**
     * Sets the rank of each connection's peer. Under libnccl an end does not know the rank of its peer. The two ends of
     * a connection have the same key, so the peer is the rank of the other end with this key.
     */
    private void namePeers(List<Definitions> all) {
        for (Definitions each : all) {
            each.connections.values()
                    .stream()
                    .filter(one -> !one.key().equals("0-0"))
                    .forEach(one -> byKey.computeIfAbsent(one.hash() + "/" + one.key(), key -> new ArrayList<>())
                            .add(one));
        }
        for (Definitions each : all) {
            each.connections.replaceAll((number, one) -> one.peer() >= 0 ? one
                    : byKey.getOrDefault(one.hash() + "/" + one.key(), List.of())
                            .stream()
                            .filter(other -> other.sends() != one.sends() && other.rank() >= 0)
                            .findFirst()
                            .map(other -> new Connection(one.process(), one.hash(), one.rank(), other.rank(),
                                    one.channel(), one.direction(), one.kind(), one.key(), one.network(),
                                    one.peerText()))
                            .orElse(one));
        }
    }

    /** The definitions in the text file of a process. The process's records refer to them by number. */
    private final class Definitions {

        private final Path file;
        private final String name;
        private final Process process;
        private final long epoch;
        private final Map<Integer, Group> groups = new HashMap<>();
        private final Map<Integer, Connection> connections = new HashMap<>();
        private final Map<Integer, String> names = new HashMap<>();
        private final Map<List<Long>, Call> enqueued = new HashMap<>();
        private final Map<List<Long>, long[]> ran = new HashMap<>();

        Definitions(Path file) throws IOException {
            this.file = file;
            name = named(file).substring(0, named(file).length() - RecordFormat.DEFINITIONS_SUFFIX.length());
            String text = Files.readString(file, StandardCharsets.UTF_8);
            // An incomplete last line is ignored, because the process was killed or still writes the line.
            List<String[]> lines =
                    text.substring(0, text.lastIndexOf('\n') + 1).lines().map(line -> line.split("\t", -1)).toList();
            try {
                if (lines.size() < 2 || !lines.getFirst()[0].equals("millrace-recording")
                        || Integer.parseInt(lines.getFirst()[1]) != RecordFormat.VERSION) {
                    throw new MillraceException(file + " is not a recording of version " + RecordFormat.VERSION
                            + "; read it with the Millrace that wrote it");
                }
                String[] self = lines.get(1);
                epoch = Long.parseLong(self[3]) - Long.parseLong(self[4]);
                Optional<String> link =
                        lines.stream().filter(line -> line[0].equals("link")).map(line -> line[1]).findFirst();
                process = new Process(self[1], Long.parseLong(self[2]), link);
                lines.forEach(this::define);
            } catch (IndexOutOfBoundsException | NumberFormatException damaged) {
                throw new MillraceException(file + " is damaged: " + damaged.getMessage(), damaged);
            }
            processes.add(process);
            connections.replaceAll((number, one) -> one.rank() >= 0 ? one : withRank(one));
        }

        private void define(String[] line) {
            switch (line[0]) {
                case "communicator" -> groups.put(Integer.valueOf(line[1]), new Group(process,
                        Long.parseUnsignedLong(line[2], 16), Integer.parseInt(line[3]), Integer.parseInt(line[4])));
                case "connection" -> connections.put(Integer.valueOf(line[1]),
                        new Connection(process, Long.parseUnsignedLong(line[2], 16), Integer.parseInt(line[3]),
                                Integer.parseInt(line[4]), Integer.parseInt(line[5]), line[6],
                                Integer.parseInt(line[7]), line[8] + "-" + line[9], line[11], line[12]));
                case "name" -> names.put(Integer.valueOf(line[1]), RecordedRun.kind(line[2]));
                default -> {
                }
            }
        }

        private Connection withRank(Connection one) {
            List<Group> own = groups.values().stream().filter(group -> group.hash() == one.hash()).toList();
            return own.size() != 1 ? one
                    : new Connection(process, one.hash(), own.getFirst().rank(), one.peer(), one.channel(),
                            one.direction(), one.kind(), one.key(), one.network(), one.peerText());
        }

        private void read(Path records) throws IOException {
            try (FileChannel channel = FileChannel.open(records); Arena arena = Arena.ofConfined()) {
                long length = channel.size();
                if (length < RecordFormat.HEADER_BYTES) {
                    // The file has no complete header yet, because the process had just created the file.
                    return;
                }
                MemorySegment memory = channel.map(MapMode.READ_ONLY, 0, length, arena);
                // Pairs with the release in RecordFile.create(): the other words of the header are visible.
                long magic = (long) ACQUIRED.getAcquire(memory, (long) RecordFormat.MAGIC_OFFSET);
                if (magic == 0) {
                    return;
                }
                long capacity = memory.get(LONG, RecordFormat.CAPACITY_OFFSET);
                if (magic != RecordFormat.MAGIC || memory.get(INT, RecordFormat.VERSION_OFFSET) != RecordFormat.VERSION
                        || memory.get(INT, RecordFormat.RECORD_BYTES_OFFSET) != RecordFormat.RECORD_BYTES
                        || capacity <= 0
                        || capacity != (length - RecordFormat.HEADER_BYTES) / RecordFormat.RECORD_BYTES) {
                    throw new MillraceException(
                            records + " has no records of version " + RecordFormat.VERSION + ", or is damaged");
                }
                lost += memory.get(LONG, RecordFormat.LOST_OFFSET);
                // Pairs with the release in RecordFile.append(): the counted records are visible.
                long count = (long) ACQUIRED.getAcquire(memory, (long) RecordFormat.COUNT_OFFSET);
                truncated |= count >= capacity;
                MemorySegment copy = arena.allocate(RecordFormat.RECORD_BYTES, Long.BYTES);
                for (long number = Math.max(0, count - capacity); number < count; number++) {
                    long at = RecordFormat.HEADER_BYTES + number % capacity * RecordFormat.RECORD_BYTES;
                    MemorySegment.copy(memory, at, copy, 0, RecordFormat.RECORD_BYTES);
                    // Orders the copy before the second load of the count; pairs with the fence in RecordFile.append().
                    VarHandle.acquireFence();
                    // The copy is valid only if the writer has not overwritten the record during the copy.
                    if (memory.get(LONG, RecordFormat.COUNT_OFFSET) - number < capacity) {
                        add(copy);
                    }
                }
            }
        }

        private void add(MemorySegment record) {
            long head = record.get(LONG, 0);
            int subject = RecordFormat.subject(head);
            long[] words = new long[RecordFormat.RECORD_BYTES / Long.BYTES];
            MemorySegment.copy(record, LONG, 0, words, 0, words.length);
            List<Long> call = List.of((long) subject, words[3]);
            switch (RecordFormat.kind(head)) {
                case RecordFormat.STEP -> {
                    Connection connection = connections.get(subject);
                    if (wantsSteps && connection != null) {
                        steps.add(new Step(connection, RecordFormat.small(head), epoch + words[1], epoch + words[2],
                                words[3], words[4], words[5], words[6]));
                    }
                }
                case RecordFormat.ENQUEUED -> {
                    Group group = groups.get(subject);
                    int type = RecordFormat.small(head);
                    if (group != null) {
                        enqueued.put(List.of((long) subject, words[2]),
                                new Call(group, names.getOrDefault(RecordFormat.name(head), "?"), words[2],
                                        epoch + words[1], 0, 0,
                                        words[3] >= 0 ? words[3] : RecordedRun.bytes(words[4], type), words[4], type,
                                        words[5], RecordFormat.low(words[6]), RecordFormat.high(words[6]), words[7]));
                    }
                }
                case RecordFormat.RAN -> ran.put(call, new long[] {words[1], words[2]});
                default -> throw new MillraceException(file + ": a record of kind " + RecordFormat.kind(head)
                        + " is unknown in version " + RecordFormat.VERSION);
            }
        }

        private void addCalls() {
            enqueued.forEach((key, call) -> {
                long[] times = ran.getOrDefault(key, new long[2]);
                calls.add(new Call(call.group(), call.kind(), call.number(), call.enqueued(),
                        times[0] == 0 ? 0 : epoch + times[0], times[1] == 0 ? 0 : epoch + times[1], call.bytes(),
                        call.count(), call.type(), call.sequence(), call.peer(), call.root(), call.launch()));
            });
        }
    }
}
