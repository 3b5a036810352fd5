package org.millrace.trace;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BiConsumer;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.millrace.file.FileName;
import org.millrace.file.PrivateFile;
import org.millrace.trace.TraceLayout.ConnectionFields;
import org.millrace.trace.TracedProcess.Message;
import org.millrace.trace.TracedProcess.TracedAgent;

/** Finds this user's traces and reads them. */
public final class TraceReader {

    /**
     * Order of traces, by process number. With this order, all processes derive the same verdicts from the same traces.
     */
    static final Comparator<TracedProcess> ORDER =
            Comparator.comparingLong((TracedProcess process) -> process.identity().pid())
                    .thenComparing(TracedProcess::epochNanos);

    private TraceReader() {}

    /**
     * Reads all traces, sorted by process number. {@code unreadable} receives the existing files that cannot be read.
     */
    public static List<TracedProcess> readAll(Path directory, BiConsumer<Path, IOException> unreadable)
            throws IOException {
        return readAll(list(directory), unreadable);
    }

    static List<Path> list(Path directory) throws IOException {
        List<Path> traces = new ArrayList<>();
        try (DirectoryStream<Path> files = Files.newDirectoryStream(directory, TraceSweep.GLOB)) {
            for (Path file : files) {
                FileName name = FileName.parse(file.getFileName().toString());
                if (name != null && name.kind().equals(FileName.TRACE)) {
                    traces.add(file);
                }
            }
        } catch (DirectoryIteratorException e) {
            throw e.getCause();
        }
        return traces;
    }

    /** Reads the traces in the given files, in the order of {@link #readAll(Path, BiConsumer)}. */
    static List<TracedProcess> readAll(Collection<Path> files, BiConsumer<Path, IOException> unreadable) {
        List<TracedProcess> found = new ArrayList<>();
        for (Path file : files) {
            try {
                if (PrivateFile.isOurFile(file)) {
                    found.add(read(file));
                }
            } catch (NoSuchFileException gone) {
                // The trace was deleted, because its process has just ended.
            } catch (IOException e) {
                unreadable.accept(file, e);
            }
        }
        found.sort(ORDER);
        return found;
    }

    /**
     * Reads a process's trace.
     *
     * @throws TraceFormatException if the file is not a trace, or has another format
     */
    public static TracedProcess read(Path file) throws IOException {
        return read(file, System::nanoTime);
    }

    static TracedProcess read(Path file, LongSupplier clock) throws IOException {
        FileName name = FileName.parse(file.getFileName().toString());
        if (name == null) {
            throw new TraceFormatException(file + " is not named as a trace is");
        }
        try (FileChannel channel = FileChannel.open(file, Set.of(StandardOpenOption.READ, LinkOption.NOFOLLOW_LINKS))) {
            long begun = clock.getAsLong();
            TraceBytes header = TraceBytes.read(channel, 0, TraceLayout.HEADER_BYTES);
            check(file, header);
            Blocks blocks = new Blocks(channel, header);
            blocks.read();
            boolean alive = !TraceSweep.isOwnerDead(file, name.owner());
            return new TracedProcess(file, name.owner(), alive, header.textAt(TraceLayout.HOST),
                    header.textAt(TraceLayout.PROGRAM), header.intAt(TraceLayout.RANK_OFFSET),
                    header.intAt(TraceLayout.SIZE_OFFSET), header.intAt(TraceLayout.FAILED_OFFSET) != 0, begun,
                    header.longAt(TraceLayout.HEARTBEAT_OFFSET), header.longAt(TraceLayout.LATE_BEAT_OFFSET),
                    header.longAt(TraceLayout.EPOCH_MILLIS_OFFSET), header.longAt(TraceLayout.EPOCH_NANOS_OFFSET),
                    settings(header), agents(header), blocks.communicators, blocks.connections, blocks.gin,
                    blocks.silences, blocks.joins, messages(header), alive ? ports(header) : List.of());
        }
    }

    private static void check(Path file, TraceBytes header) throws TraceFormatException {
        long magic = header.longAt(TraceLayout.MAGIC_OFFSET);
        if (magic != TraceLayout.MAGIC) {
            throw new TraceFormatException(file + (magic == 0 ? " is a trace that was not finished"
                    : " is not a trace: it begins with 0x" + Long.toHexString(magic)));
        }
        int version = header.intAt(TraceLayout.VERSION_OFFSET);
        if (version != TraceLayout.VERSION || header.intAt(TraceLayout.HEADER_BYTES_OFFSET) != TraceLayout.HEADER_BYTES
                || header.intAt(TraceLayout.BLOCK_BYTES_OFFSET) != TraceLayout.BLOCK_BYTES) {
            throw new TraceFormatException(file + " has format " + version + ", and this Millrace reads "
                    + TraceLayout.VERSION + ": read it with the release that its process runs");
        }
    }

    private static Map<String, String> settings(TraceBytes header) {
        Map<String, String> settings = new LinkedHashMap<>();
        header.textAt(TraceLayout.SETTINGS).lines().forEach(line -> {
            int equals = line.indexOf('=');
            if (equals > 0) {
                settings.put(line.substring(0, equals), line.substring(equals + 1));
            }
        });
        return settings;
    }

    private static List<TracedAgent> agents(TraceBytes header) {
        List<TracedAgent> agents = new ArrayList<>();
        int count = Math.clamp(header.intAt(TraceLayout.AGENTS_OFFSET), 0, TraceLayout.MAX_AGENTS);
        for (int number = 0; number < count; number++) {
            int at = TraceLayout.AGENT_TABLE_OFFSET + number * TraceLayout.AGENT_BYTES;
            if (header.intAt(at + TraceLayout.AGENT_STATE_OFFSET) != TraceLayout.OPEN) {
                continue;
            }
            agents.add(new TracedAgent(number, header.slice(at, TraceLayout.AGENT_BYTES).textAt(TraceLayout.AGENT_NAME),
                    header.intAt(at + TraceLayout.AGENT_THREAD_OFFSET),
                    header.countAt(at + TraceLayout.AGENT_PASSES_OFFSET),
                    header.countAt(at + TraceLayout.AGENT_BUSY_OFFSET),
                    header.longAt(at + TraceLayout.AGENT_CLOCK_OFFSET),
                    header.countAt(at + TraceLayout.AGENT_CPU_OFFSET)));
        }
        return List.copyOf(agents);
    }

    private static List<String> ports(TraceBytes header) {
        return header.textAt(TraceLayout.PORTS)
                .lines()
                .filter(line -> line.endsWith(")")) // The last line is cut if the text had no room for all ports.
                .toList();
    }

    private static List<Message> messages(TraceBytes header) {
        List<Message> messages = new ArrayList<>();
        long count = header.countAt(TraceLayout.MESSAGES_OFFSET);
        for (long number = Math.max(0, count - TraceLayout.MESSAGES); number < count; number++) {
            int at = TraceLayout.MESSAGE_TABLE_OFFSET
                    + (int) (number % TraceLayout.MESSAGES) * TraceLayout.MESSAGE_BYTES;
            messages.add(new Message(header.longAt(at + TraceLayout.MESSAGE_TIME_OFFSET),
                    header.slice(at, TraceLayout.MESSAGE_BYTES).textAt(TraceLayout.MESSAGE_TEXT)));
        }
        return List.copyOf(messages);
    }

    /**
     * Reads each block, and then the beginning of the block once more, because entries of its ring may be overwritten
     * during the first reading.
     */
    private static final class Blocks {

        private final FileChannel channel;
        private final int count;
        private final boolean steps;
        private final List<TracedConnection> connections = new ArrayList<>();
        private final List<TracedCommunicator> communicators = new ArrayList<>();
        private final List<TracedGin> gin = new ArrayList<>();
        private final List<TracedSilence> silences = new ArrayList<>();
        private final List<TracedJoin> joins = new ArrayList<>();

        Blocks(FileChannel channel, TraceBytes header) throws IOException {
            this.channel = channel;
            long there = Math.max(0, channel.size() - TraceLayout.HEADER_BYTES) / TraceLayout.BLOCK_BYTES;
            count = (int) Math.clamp(header.intAt(TraceLayout.BLOCKS_OFFSET), 0,
                    Math.min(there, TraceLayout.MAX_BLOCKS));
            steps = header.intAt(TraceLayout.STEPS_OFFSET) != 0;
        }

        void read() throws IOException {
            for (int index = 0; index < count; index++) {
                TraceBytes block = TraceBytes.read(channel, TraceLayout.block(index), TraceLayout.BLOCK_BYTES);
                TraceBytes afterwards = TraceBytes.read(channel, TraceLayout.block(index), TraceLayout.RECORD_BYTES);
                if (block.longAt(TraceLayout.GENERATION_OFFSET) == afterwards.longAt(TraceLayout.GENERATION_OFFSET)) {
                    add(index, block, afterwards);
                }
            }
        }

        private void add(int index, TraceBytes block, TraceBytes afterwards) {
            switch (block.intAt(TraceLayout.TYPE_OFFSET)) {
                case TraceLayout.CONNECTION -> addTo(connections, TracedConnection.parse(index, block, steps,
                        afterwards.countAt(ConnectionFields.FRAMES_OFFSET)));
                case TraceLayout.COMMUNICATOR -> addTo(communicators, TracedCommunicator.parse(block, afterwards));
                case TraceLayout.GIN -> addTo(gin, TracedGin.parse(block));
                case TraceLayout.SILENCE -> addTo(silences, TracedSilence.parse(block));
                case TraceLayout.JOIN -> addTo(joins, TracedJoin.parse(block));
                default -> {
                    // The block is unused, or a later release of Millrace has written it.
                }
            }
        }

        private static <T> void addTo(List<T> list, @Nullable T parsed) {
            if (parsed != null) {
                list.add(parsed);
            }
        }
    }

    /** Thrown if a file is not a trace, or this release cannot read it. The message states the file and its content. */
    static final class TraceFormatException extends IOException {

        private static final long serialVersionUID = 1L;

        TraceFormatException(String message) {
            super(message);
        }
    }
}
