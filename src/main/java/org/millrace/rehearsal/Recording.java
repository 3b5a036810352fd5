package org.millrace.rehearsal;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Settings;
import org.millrace.file.PrivateFile;
import org.millrace.file.ProcessIdentity;
import org.millrace.trace.ConnectionIdentity;
import org.millrace.trace.ProcessTrace;
import org.millrace.trace.Recorder;

/**
 * Recording of this process, in several files. One text file defines connections and communicators. Each thread that
 * serves connections has a file of records ({@link RecordFormat}). A further file has the records of operations. When a
 * thread has ended, a later thread continues to write the ended thread's file.
 */
public final class Recording implements Recorder {

    private static final long PAUSE_NANOS = 10_000_000;
    /**
     * Interval between two collections of operations from native code, in nanoseconds. The interval is short, because
     * native code keeps only the most recent operations.
     */
    private static final long LOOK_NANOS = 1_000_000;

    private static boolean opened;

    private record Writer(Thread thread, RecordFile file) {
    }

    private final Path directory;
    private final String name;
    private final long bytes;
    private final Consumer<String> complain;
    private final FileChannel definitions;
    private final ThreadLocal<@Nullable RecordFile> ofThread = new ThreadLocal<>();
    private final List<Writer> writers = new CopyOnWriteArrayList<>();
    private final List<Runnable> looks = new CopyOnWriteArrayList<>();
    private final Object operationLock = new Object();
    private final RecordFile operations;
    private final Map<String, Integer> names = new HashMap<>();
    private int files;
    private int connections;
    private int communicators;
    private boolean failed;
    private volatile @Nullable Thread preparing;

    /**
     * @param bytes    size of each file of records, in bytes
     * @param complain receives one message if the recording becomes incomplete
     */
    Recording(Path directory, long bytes, Consumer<String> complain) throws IOException {
        this.directory = directory;
        this.bytes = bytes;
        this.complain = complain;
        ProcessIdentity self = ProcessIdentity.CURRENT;
        name = RecordFormat.PREFIX + ProcessIdentity.HOST.replaceAll("[^A-Za-z0-9.-]", "_") + "-" + self.pid() + "-"
                + System.nanoTime();
        Files.createDirectories(directory);
        definitions = PrivateFile.create(directory.resolve(name + RecordFormat.DEFINITIONS_SUFFIX), 0);
        define("millrace-recording", RecordFormat.VERSION);
        // The wall clock and the clock of nanoTime are read together, so that readers can compare the times of
        // processes.
        Instant now = Instant.now();
        define("process", ProcessIdentity.HOST, self.pid(), now.getEpochSecond() * 1_000_000_000L + now.getNano(),
                System.nanoTime());
        operations = newFile();
    }

    /**
     * Begins to record this process if its configuration requests this. Does nothing if a recording has begun before.
     *
     * @param complain receives one message if the recording becomes incomplete later
     * @throws ConfigurationException if recording is impossible; the message names the remedy
     */
    public static synchronized void open(Configuration configuration, Consumer<String> complain) {
        Path directory = configuration.get(Settings.RECORD).orElse(null);
        if (directory == null || opened) {
            return;
        }
        String what = Settings.RECORD.name() + "=" + directory;
        if (ProcessTrace.current() == null) {
            throw new ConfigurationException(
                    what + ": steps are recorded where they are traced, and this process has no trace; unset "
                            + Settings.TRACE.name() + ", or free space in the directory that "
                            + Settings.TRACE_DIRECTORY.name() + " names");
        }
        opened = true;
        try {
            Recording recording = new Recording(directory, configuration.get(Settings.RECORD_BYTES), complain);
            configuration.get(Settings.LINK).ifPresent(link -> recording.define("link", link));
            ProcessTrace.recordTo(recording);
            Thread.ofPlatform().daemon().name("millrace-recorder").start(recording::prepare);
        } catch (IOException unwritable) {
            throw new ConfigurationException(what + " cannot be written to: " + unwritable
                    + "; name a directory that this user may write to, or unset it");
        }
    }

    private RecordFile newFile() throws IOException {
        return RecordFile.create(directory.resolve(name + "-" + files++ + RecordFormat.SUFFIX), bytes);
    }

    @Override
    public synchronized Recorder.Steps connection(ConnectionIdentity identity) {
        define("connection", connections, Long.toHexString(identity.communicator()), identity.rank(), identity.peer(),
                identity.channel(), identity.direction(), identity.kind(), Long.toHexString(identity.keyHigh()),
                Long.toHexString(identity.keyLow()), identity.order(), identity.network(), identity.peerText());
        return new StepRecorder(this, connections++);
    }

    @Override
    public synchronized Recorder.Operations communicator(long hash, int rank, int size, String text) {
        return new OperationRecorder(this, communicators++, hash);
    }

    /** Appends a line to the file of definitions. Tabs separate the words. */
    synchronized void define(Object... words) {
        StringBuilder line = new StringBuilder();
        for (Object word : words) {
            line.append(line.isEmpty() ? "" : "\t").append(String.valueOf(word).replaceAll("[\t\n]", " "));
        }
        ByteBuffer encoded = ByteBuffer.wrap(line.append('\n').toString().getBytes(StandardCharsets.UTF_8));
        try {
            if (definitions.size() > bytes) {
                fail("there are more connections than " + Settings.RECORD_BYTES.name() + " has room for");
                return;
            }
            while (encoded.hasRemaining()) {
                definitions.write(encoded, definitions.size());
            }
        } catch (IOException full) {
            fail(full.toString());
        }
    }

    private synchronized void fail(String why) {
        if (!failed) {
            failed = true;
            complain.accept("the recording in " + directory + " is not complete: " + why);
        }
    }

    /** {@return the number that represents a name in records} The first call for a name defines its number. */
    int name(String text) {
        synchronized (operationLock) {
            return names.computeIfAbsent(text, added -> {
                define("name", names.size(), added);
                return names.size();
            });
        }
    }

    /** Returns the file of the calling thread. The thread's first call assigns a file to the thread. */
    RecordFile file() {
        RecordFile own = ofThread.get();
        return own == null ? claim() : own;
    }

    private synchronized RecordFile claim() {
        Thread self = Thread.currentThread();
        RecordFile file = null;
        for (Writer each : writers) {
            if (!each.thread.isAlive()) {
                writers.remove(each);
                file = each.file;
                break;
            }
        }
        try {
            file = file == null ? newFile() : file;
            writers.add(new Writer(self, file));
        } catch (IOException full) {
            fail(full.toString());
            file = RecordFile.none();
        }
        ofThread.set(file);
        return file;
    }

    void appendOperation(long head, long first, long second, long third, long fourth, long fifth, long sixth,
            long seventh) {
        synchronized (operationLock) {
            operations.append(head, first, second, third, fourth, fifth, sixth, seventh);
        }
    }

    void watch(Runnable look) {
        looks.add(look);
        LockSupport.unpark(preparing);
    }

    void unwatch(Runnable look) {
        looks.remove(look);
    }

    private void prepare() {
        preparing = Thread.currentThread();
        while (true) {
            prepareOnce();
            LockSupport.parkNanos(looks.isEmpty() ? PAUSE_NANOS : LOOK_NANOS);
        }
    }

    /** Collects operations that native code has reported, and prepares memory for records. Recorder's thread only. */
    void prepareOnce() {
        try {
            looks.forEach(Runnable::run);
            operations.prepare();
            for (Writer each : writers) {
                each.file.prepare();
            }
        } catch (IOException | RuntimeException failure) {
            fail(failure.toString());
        }
    }

    static final class OperationRecorder implements Recorder.Operations {

        private final Recording recording;
        private final int number;
        private final long hash;
        private @Nullable Runnable look;

        OperationRecorder(Recording recording, int number, long hash) {
            this.recording = recording;
            this.number = number;
            this.hash = hash;
        }

        @Override
        public void describe(int rank, int size, int nodes, String name) {
            recording.define("communicator", number, Long.toHexString(hash), rank, size, nodes, name);
        }

        @Override
        public void enqueued(long operation, long time, String name, long sequence, long bytes, long count, int type,
                int peer, int root, long launch) {
            recording.appendOperation(RecordFormat.head(RecordFormat.ENQUEUED, type, recording.name(name), number),
                    time, operation, bytes, count, sequence, RecordFormat.pair(peer, root), launch);
        }

        @Override
        public void ran(long operation, long started, long ended) {
            recording.appendOperation(RecordFormat.head(RecordFormat.RAN, 0, 0, number), started, ended, operation, 0,
                    0, 0, 0);
        }

        @Override
        public void watch(Runnable what) {
            look = what;
            recording.watch(what);
        }

        @Override
        public void close() {
            if (look != null) {
                recording.unwatch(look);
                look.run();
            }
        }
    }

    /**
     * Records one direction of a connection. Appends the record of a step when the step is done and its times are
     * known.
     */
    static final class StepRecorder implements Recorder.Steps {

        /** Length of the arrays of frames in flight: a power of two, greater than the number of frames in flight. */
        private static final int FRAMES = 64;
        /** Number of frames in flight at which the connection cannot take another frame. */
        private static final int WINDOW = 8;

        private final Recording recording;
        private final int connection;
        private final long[] taken = new long[FRAMES];
        private final long[] idle = new long[FRAMES];
        private final long[] blocked = new long[FRAMES];
        private final long[] sizes = new long[FRAMES];
        private final int[] protocols = new int[FRAMES];
        private long frames;
        private long framesDone;
        /**
         * Earliest time when the connection could take the next frame. It is the later of two times: the time when the
         * previous frame was taken, and the time when the number of frames in flight last fell below {@link #WINDOW}.
         */
        private long free = System.nanoTime();
        /**
         * Time since which the next frame has been available but could not be taken; 0 if no such frame is available.
         */
        private long blockedSince;

        StepRecorder(Recording recording, int connection) {
            this.recording = recording;
            this.connection = connection;
        }

        @Override
        public void served() {
            recording.file();
            free = System.nanoTime();
        }

        @Override
        public void taken(long end, long size, int protocol) {
            long now = System.nanoTime();
            int frame = (int) frames++ & FRAMES - 1;
            taken[frame] = now;
            long seen = blockedSince == 0 ? now : blockedSince;
            idle[frame] = Math.max(0, seen - free);
            blocked[frame] = now - seen;
            sizes[frame] = size;
            protocols[frame] = protocol;
            blockedSince = 0;
            free = now;
        }

        @Override
        public void blocked() {
            blockedSince = blockedSince == 0 ? System.nanoTime() : blockedSince;
        }

        @Override
        public void done(long end) {
            long now = System.nanoTime();
            if (frames - framesDone == WINDOW) {
                free = now;
            }
            int frame = (int) framesDone++ & FRAMES - 1;
            recording.file()
                    .append(RecordFormat.head(RecordFormat.STEP, protocols[frame], 0, connection), taken[frame], now,
                            end, sizes[frame], idle[frame], blocked[frame], 0);
        }
    }
}
