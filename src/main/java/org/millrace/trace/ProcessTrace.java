package org.millrace.trace;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.file.ProcessIdentity;
import org.millrace.trace.TraceLayout.ConnectionFields;
import org.millrace.trace.TraceLayout.GinFields;
import org.millrace.trace.TraceLayout.JoinFields;
import org.millrace.trace.TraceLayout.SilenceFields;

/**
 * Trace of this process: one file, which stays mapped while the process lives. If the file has no room for data, the
 * data is omitted, and nothing fails.
 */
public final class ProcessTrace {

    private static final Logger LOG = LogManager.getLogger(ProcessTrace.class);
    /** Block index of a trace that has no block in the file, see {@link #rehearsal}. */
    private static final int NO_BLOCK = -1;
    /**
     * Duration in nanoseconds that marks an entry without a poll. The time of the last poll is then stored as the
     * entry's start plus this duration. No process lives until that time.
     */
    private static final long UNPOLLED_NANOS = 1L << 62;

    /** The trace of this process; null if it has none. Tests replace it by a trace of their own. */
    static volatile @Nullable ProcessTrace current;
    private static boolean opened;
    private static volatile @Nullable Recorder recorder;

    private final TraceFile file;
    private final boolean steps;
    private final TraceBlocks blocks;
    private final List<Runnable> watchers = new CopyOnWriteArrayList<>();
    private final TraceHeartbeat heartbeat;
    private int agents;
    private long messages;
    private volatile int silences;

    ProcessTrace(TraceFile file, boolean steps) {
        this.file = file;
        this.blocks = new TraceBlocks(file);
        this.steps = steps;
        this.heartbeat = new TraceHeartbeat(this);
        long header = file.header();
        ProcessIdentity self = ProcessIdentity.CURRENT;
        set(TraceLayout.HEADER_BYTES_OFFSET, TraceLayout.HEADER_BYTES);
        set(TraceLayout.BLOCK_BYTES_OFFSET, TraceLayout.BLOCK_BYTES);
        set(TraceLayout.STEPS_OFFSET, steps ? 1 : 0);
        TraceMemory.set(header + TraceLayout.PID_OFFSET, self.pid());
        TraceMemory.set(header + TraceLayout.START_TICKS_OFFSET, self.startTicks());
        TraceMemory.set(header + TraceLayout.NAMESPACE_OFFSET, self.namespace());
        TraceMemory.set(header + TraceLayout.EPOCH_MILLIS_OFFSET, System.currentTimeMillis());
        TraceMemory.set(header + TraceLayout.EPOCH_NANOS_OFFSET, System.nanoTime());
        set(TraceLayout.RANK_OFFSET, -1);
        set(TraceLayout.SIZE_OFFSET, -1);
        TraceMemory.text(header, TraceLayout.HOST, ProcessIdentity.HOST);
        beat();
        set(TraceLayout.VERSION_OFFSET, TraceLayout.VERSION);
        // The file is a valid trace from now on.
        TraceMemory.release(header + TraceLayout.MAGIC_OFFSET, TraceLayout.MAGIC);
    }

    /**
     * Opens this process's trace, unless it was opened before.
     *
     * @param directory directory that contains the traces, and the rings in shared memory
     * @param steps     whether the last frames of each connection are recorded in addition to counters
     */
    public static synchronized void open(Path directory, boolean steps) {
        if (opened) {
            return;
        }
        opened = true;
        TraceSweep.sweep(directory);
        try {
            ProcessTrace trace = new ProcessTrace(TraceFile.create(directory), steps);
            TraceSweep.atExit(trace);
            current = trace;
        } catch (IOException e) {
            LOG.info("there is no trace of this process, and 'millrace top' will not show it: {}", e.toString());
        }
    }

    public static @Nullable ProcessTrace current() {
        return current;
    }

    /** Sets the recorder of connections and communicators that are created from now on. */
    public static void recordTo(Recorder with) {
        recorder = with;
    }

    /** {@return whether connections and communicators that are created now are recorded} */
    public static boolean isRecorded() {
        return recorder != null;
    }

    /**
     * Returns the number of living processes of this host with a trace, including this process; 1 if this process has
     * no trace.
     */
    public static int livingProcesses() {
        ProcessTrace own = current;
        return own == null ? 1 : Math.max(1, TraceSweep.living(Objects.requireNonNull(own.path().getParent())));
    }

    public Path path() {
        return file.path();
    }

    long header() {
        return file.header();
    }

    private void set(int offset, int value) {
        TraceMemory.set(file.header() + offset, value);
    }

    /** Stores a description of the process. {@code rank} and {@code size} are the launcher's values, or -1. */
    public synchronized void describe(String program, int rank, int size) {
        set(TraceLayout.RANK_OFFSET, rank);
        set(TraceLayout.SIZE_OFFSET, size);
        TraceMemory.text(file.header(), TraceLayout.PROGRAM, program);
    }

    /** Stores the settings that were set, except secret ones. */
    public synchronized void settings(Map<String, String> settings) {
        StringBuilder lines = new StringBuilder();
        settings.forEach((name, value) -> lines.append(name).append('=').append(value.replace('\n', ' ')).append('\n'));
        TraceMemory.text(file.header(), TraceLayout.SETTINGS, lines.toString());
    }

    /** Stores the ports that the process listens on. Ports that do not fit into the field are omitted. */
    public synchronized void ports(Collection<String> open) {
        TraceMemory.text(file.header(), TraceLayout.PORTS, String.join("\n", open));
    }

    /**
     * Returns the trace of an agent. If there are too many agents, the returned trace is not stored in the file, but
     * still reads the clock.
     */
    public synchronized AgentTrace agent(String name) {
        int number = 0;
        while (number < agents
                && TraceMemory.getInt(agentAt(number) + TraceLayout.AGENT_STATE_OFFSET) == TraceLayout.OPEN) {
            number++;
        }
        if (number == TraceLayout.MAX_AGENTS) {
            return new AgentTrace(this, 0, -1);
        }
        long at = agentAt(number);
        TraceMemory.clear(at, TraceLayout.AGENT_BYTES);
        TraceMemory.text(at, TraceLayout.AGENT_NAME, name);
        TraceMemory.release(at + TraceLayout.AGENT_STATE_OFFSET, TraceLayout.OPEN);
        agents = Math.max(agents, number + 1);
        TraceMemory.release(file.header() + TraceLayout.AGENTS_OFFSET, agents);
        return new AgentTrace(this, at, number);
    }

    private long agentAt(int number) {
        return file.header() + TraceLayout.AGENT_TABLE_OFFSET + (long) number * TraceLayout.AGENT_BYTES;
    }

    synchronized void closeAgent(int number) {
        if (number >= 0) {
            TraceMemory.release(agentAt(number) + TraceLayout.AGENT_STATE_OFFSET, TraceLayout.CLOSED);
        }
    }

    /** Returns the trace of a connection; null if the file has no room. */
    public synchronized @Nullable ConnectionTrace connection(ConnectionIdentity identity) {
        int index = blocks.take(TraceLayout.CONNECTION, identity.communicator(), identity.rank());
        if (index < 0) {
            return null;
        }
        long at = blocks.address(index);
        TraceMemory.set(at + ConnectionFields.PEER_OFFSET, identity.peer());
        TraceMemory.set(at + ConnectionFields.CHANNEL_OFFSET, identity.channel());
        TraceMemory.set(at + ConnectionFields.DIRECTION_OFFSET, identity.direction().ordinal());
        TraceMemory.set(at + ConnectionFields.KIND_OFFSET, identity.kind());
        TraceMemory.set(at + ConnectionFields.AGENT_OFFSET, -1);
        TraceMemory.set(at + ConnectionFields.KEY_HIGH_OFFSET, identity.keyHigh());
        TraceMemory.set(at + ConnectionFields.KEY_LOW_OFFSET, identity.keyLow());
        TraceMemory.set(at + ConnectionFields.ORDER_OFFSET, identity.order());
        TraceMemory.set(at + ConnectionFields.FIRST_STEP_OFFSET, identity.firstStep());
        TraceMemory.set(at + ConnectionFields.TAKEN_OFFSET, identity.firstStep());
        TraceMemory.set(at + ConnectionFields.DONE_OFFSET, identity.firstStep());
        TraceMemory.set(at + ConnectionFields.CONSUMED_OFFSET, identity.firstStep());
        TraceMemory.set(at + ConnectionFields.BLOCKED_OFFSET, identity.firstStep() - 1);
        TraceMemory.text(at, ConnectionFields.NETWORK, identity.network());
        TraceMemory.text(at, ConnectionFields.PEER_TEXT, identity.peerText());
        TraceMemory.text(at, ConnectionFields.NAME, identity.name());
        show(index);
        if (FlightEvents.isRecording()) {
            FlightEvents.connection(identity);
        }
        Recorder with = recorder;
        return new ConnectionTrace(this, index, at, steps ? at + TraceLayout.RECORD_BYTES : 0,
                identity.direction() != ConnectionIdentity.Direction.RECEIVE,
                with == null ? null : with.connection(identity));
    }

    /**
     * Returns a trace for a rehearsal, which compiles code before the first connection. The trace writes to memory that
     * no reader sees.
     */
    public ConnectionTrace rehearsal(boolean sends) {
        long at = Arena.global().allocate(TraceLayout.BLOCK_BYTES, Long.BYTES).address();
        return new ConnectionTrace(this, NO_BLOCK, at, steps ? at + TraceLayout.RECORD_BYTES : 0, sends, null);
    }

    /** Returns the trace of a communicator; null if the file has no room. Unknown values are -1, or empty. */
    public synchronized @Nullable CommunicatorTrace communicator(long hash, int rank, int size, String name) {
        int index = blocks.take(TraceLayout.COMMUNICATOR, hash, rank);
        if (index < 0) {
            return null;
        }
        Recorder with = recorder;
        CommunicatorTrace made = new CommunicatorTrace(this, index, blocks.address(index),
                with == null ? null : with.communicator(hash, rank, size, name));
        made.describe(rank, size, -1, name);
        show(index);
        return made;
    }

    /** Returns the trace of a GIN context; null if the file has no room. */
    public synchronized @Nullable GinTrace gin(long communicator, int rank, int peers, int context, int queueSize,
            String name) {
        int index = blocks.take(TraceLayout.GIN, communicator, rank);
        if (index < 0) {
            return null;
        }
        long at = blocks.address(index);
        TraceMemory.set(at + GinFields.PEERS_OFFSET, peers);
        TraceMemory.set(at + GinFields.CONTEXT_OFFSET, context);
        TraceMemory.set(at + GinFields.QUEUE_SIZE_OFFSET, queueSize);
        TraceMemory.text(at, GinFields.NAME, name);
        show(index);
        return new GinTrace(this, index, at, context);
    }

    /**
     * Returns the trace of a link that has been silent since the given time; null if the file has no room.
     *
     * @param streams number of this process's streams over the link; 0 for a link between two other hosts
     */
    public @Nullable SilenceTrace silence(long since, int streams, String local, String remote, String peer) {
        SilenceTrace written = link(since, streams, local, remote, peer);
        silences += written == null ? 0 : 1;
        return written;
    }

    private synchronized @Nullable SilenceTrace link(long since, int streams, String local, String remote,
            String peer) {
        int index = blocks.take(TraceLayout.SILENCE, 0, -1);
        if (index < 0) {
            return null;
        }
        long at = blocks.address(index);
        TraceMemory.set(at + SilenceFields.SINCE_OFFSET, since);
        TraceMemory.set(at + SilenceFields.STREAMS_OFFSET, streams);
        TraceMemory.text(at, SilenceFields.LOCAL, local);
        TraceMemory.text(at, SilenceFields.REMOTE, remote);
        TraceMemory.text(at, SilenceFields.PEER, peer);
        show(index);
        return new SilenceTrace(this, index, at);
    }

    /**
     * Stores that a connection has lost its last stream and waits for another stream.
     *
     * @return trace of the outage until the connection has a stream again or is lost; null if the file has no room
     */
    public @Nullable SilenceTrace cut(String connection, String peer, String what) {
        outage(connection, what, 0);
        return link(System.nanoTime(), SilenceFields.CUT, "", peer, what);
    }

    synchronized JoinTrace join(long communicator, int rank, int size, long since, String where, String activity) {
        int index = blocks.take(TraceLayout.JOIN, communicator, rank);
        if (index < 0) {
            return JoinTrace.NONE;
        }
        long at = blocks.address(index);
        TraceMemory.set(at + JoinFields.SIZE_OFFSET, size);
        TraceMemory.set(at + JoinFields.SINCE_OFFSET, since);
        TraceMemory.set(at + JoinFields.POLLED_OFFSET, System.nanoTime() + UNPOLLED_NANOS);
        TraceMemory.text(at, JoinFields.WHERE, where);
        TraceMemory.text(at, JoinFields.ACTIVITY, activity);
        show(index);
        return new JoinTrace(this, index, at, size);
    }

    /** Returns the number of times that a link has fallen silent. */
    public int silences() {
        return silences;
    }

    private void show(int index) {
        blocks.show(index);
        heartbeat.needed(true);
    }

    /**
     * Closes a block, and shows the block as closed even if it has failed. The code that closes the block has already
     * learned of the failure.
     */
    synchronized void closeFailed(int index) {
        blocks.reopen(index);
        close(index);
    }

    /** Closes a block, and shows it as failed to later readers. */
    synchronized void lost(int index) {
        blocks.fail(index);
        close(index);
    }

    synchronized void close(int index) {
        if (index != NO_BLOCK) {
            blocks.close(index);
            heartbeat.needed(blocks.open() > 0);
        }
    }

    synchronized void failed(int index, String why) {
        if (index != NO_BLOCK) {
            blocks.fail(index);
            failed(why);
        }
    }

    /**
     * Marks a communicator's blocks as closed, because the program has abandoned the communicator after a loss. No rank
     * waits in this communicator any longer.
     */
    public synchronized void settle(long communicator) {
        blocks.settle(communicator);
    }

    /** Stores a failure. The file then stays when the process ends. */
    public synchronized void failed(String why) {
        set(TraceLayout.FAILED_OFFSET, 1);
        message(why);
        if (FlightEvents.isRecording()) {
            FlightEvents.loss(why);
        }
    }

    /**
     * Stores that a connection has lost its last stream, or has a stream again.
     *
     * @param what  description of the event
     * @param nanos duration without a stream, in nanoseconds; 0 when the outage begins
     */
    public void outage(String connection, String what, long nanos) {
        message(connection + ": " + what);
        if (FlightEvents.isRecording()) {
            FlightEvents.outage(connection, what, nanos);
        }
    }

    /** Stores a message for later readers. The file keeps the last {@value TraceLayout#MESSAGES} messages. */
    public synchronized void message(String text) {
        long at = file.header() + TraceLayout.MESSAGE_TABLE_OFFSET
                + (messages % TraceLayout.MESSAGES) * TraceLayout.MESSAGE_BYTES;
        TraceMemory.set(at + TraceLayout.MESSAGE_TIME_OFFSET, System.nanoTime());
        TraceMemory.text(at, TraceLayout.MESSAGE_TEXT, text);
        TraceMemory.release(file.header() + TraceLayout.MESSAGES_OFFSET, ++messages);
    }

    /**
     * Runs a watcher ten times a second while a block is open, on the trace's own thread. The watcher must not block.
     */
    public void watch(Runnable watcher) {
        watchers.add(watcher);
    }

    /** Stops running a watcher. A run that has begun may still continue. */
    public void unwatch(Runnable watcher) {
        watchers.remove(watcher);
    }

    void beat() {
        long now = System.nanoTime();
        if (now - heartbeat() > TraceLayout.LATE_NANOS) {
            TraceMemory.set(file.header() + TraceLayout.LATE_BEAT_OFFSET, now);
        }
        TraceMemory.set(file.header() + TraceLayout.HEARTBEAT_OFFSET, now);
    }

    /**
     * Returns the time of the last heartbeat. Callable from any thread. A thread may see a new heartbeat with a delay.
     */
    long heartbeat() {
        return TraceMemory.get(file.header() + TraceLayout.HEARTBEAT_OFFSET);
    }

    /** Updates the file's date, because stores to mapped memory do not update it. */
    void touch() {
        try {
            Files.setLastModifiedTime(file.path(), FileTime.fromMillis(System.currentTimeMillis()));
        } catch (IOException e) {
            LOG.debug("{} cannot be dated", file.path(), e);
        }
    }

    /** Returns the addresses of all blocks that were ever used. */
    synchronized List<Long> blocks() {
        return blocks.used();
    }

    void look() {
        watchers.forEach(Runnable::run);
    }

    /** Stores the CPU time of the agents' threads. */
    void measure() {
        int count = TraceMemory.getInt(file.header() + TraceLayout.AGENTS_OFFSET);
        for (int number = 0; number < count; number++) {
            long at = agentAt(number);
            int thread = TraceMemory.getInt(at + TraceLayout.AGENT_THREAD_OFFSET);
            long nanos = thread == 0 ? 0 : ThreadNumber.cpuNanos(thread);
            if (nanos != 0) {
                TraceMemory.set(at + TraceLayout.AGENT_CPU_OFFSET, nanos);
            }
        }
    }

    /** Returns whether the file contains nothing of interest after the process has ended. */
    synchronized boolean isUneventful() {
        return blocks.open() == 0 && TraceMemory.getInt(file.header() + TraceLayout.FAILED_OFFSET) == 0;
    }

    /**
     * Thread that records ten times a second that the process runs, while any block is open. No connection waits for
     * this thread.
     */
    static final class TraceHeartbeat {

        private static final long PERIOD_NANOS = 100_000_000;
        private static final int BEATS_PER_MEASUREMENT = 10;
        /**
         * Number of beats between two updates of the file's date. The file is kept for some time after the process's
         * end. This time is counted from the file's date.
         */
        private static final int BEATS_PER_TOUCH = 600;

        private final ProcessTrace trace;
        private final AtomicBoolean locking = new AtomicBoolean();
        private volatile @Nullable Thread thread;
        /**
         * Object that searches for connections without progress. Only the heartbeat thread uses it. A later heartbeat
         * thread continues with the same object.
         */
        private final StallWatch.Stillness stillness = new StallWatch.Stillness();

        TraceHeartbeat(ProcessTrace trace) {
            this.trace = trace;
        }

        /** Starts or ends the thread. Called under the trace's lock. */
        void needed(boolean needed) {
            Thread running = thread;
            if (needed && running == null) {
                Thread started = Thread.ofPlatform().daemon().name("millrace-trace").unstarted(this::run);
                thread = started;
                started.start();
            } else if (!needed && running != null) {
                thread = null;
                LockSupport.unpark(running);
            }
        }

        /**
         * Shows to processes of other PID namespaces that this process lives. Only the first call has an effect. Runs
         * on the heartbeat thread, because the lock takes time and no connection should wait for it.
         */
        private void lock() {
            if (locking.compareAndSet(false, true) && OwnerLock.hold(trace.path())) {
                TraceMemory.release(trace.header() + TraceLayout.LOCKED_OFFSET, 1);
            }
        }

        private void run() {
            Thread self = Thread.currentThread();
            lock();
            for (int beats = 0; thread == self; beats++) {
                trace.beat();
                if (beats % BEATS_PER_MEASUREMENT == 0) {
                    trace.measure();
                    if (FlightEvents.isRecording() && FlightEvents.recordsStalls()) {
                        stillness.tellFlightRecorder(trace.blocks());
                    }
                }
                if (beats % BEATS_PER_TOUCH == 0) {
                    trace.touch();
                }
                try {
                    trace.look();
                } catch (RuntimeException | LinkageError failure) {
                    LogManager.getLogger(TraceHeartbeat.class).warn("a watch of connections failed", failure);
                }
                LockSupport.parkNanos(PERIOD_NANOS);
            }
            trace.measure();
            trace.beat();
        }
    }

    /**
     * Trace of a silent link, see {@link ProcessTrace#silence}, or of a connection without a stream, see
     * {@link ProcessTrace#cut}. Only the thread of the process's trace uses the trace of a link.
     */
    public static final class SilenceTrace {

        private final ProcessTrace process;
        private final int index;
        private final long base;

        SilenceTrace(ProcessTrace process, int index, long base) {
            this.process = process;
            this.index = index;
            this.base = base;
        }

        /** Stores the number of streams over the link. */
        public void streams(int count) {
            TraceMemory.set(base + SilenceFields.STREAMS_OFFSET, count);
        }

        /**
         * Records the end of the silence: data has arrived over the link again, or the connection no longer waits for a
         * stream.
         */
        public void heard() {
            process.close(index);
        }

        /** Records that the link's last silent stream has closed before data arrived again. */
        public void lost() {
            process.lost(index);
        }
    }

    /** Numbers that the operating system assigns to threads. */
    static final class ThreadNumber {

        private static final Path SELF = Path.of("/proc/thread-self");

        private ThreadNumber() {}

        /** Returns the calling thread's number; 0 if the operating system does not report it. */
        static int current() {
            try {
                return Integer.parseInt(Files.readSymbolicLink(SELF).getFileName().toString());
            } catch (IOException | RuntimeException untold) {
                return 0;
            }
        }

        /**
         * Returns the CPU time of a thread of this process, in nanoseconds; 0 if the operating system does not report
         * it.
         */
        static long cpuNanos(int thread) {
            try {
                String text = Files.readString(Path.of("/proc/self/task/" + thread + "/schedstat"));
                return Long.parseLong(text.substring(0, text.indexOf(' ')));
            } catch (IOException | RuntimeException untold) {
                return 0;
            }
        }
    }

    /**
     * Trace of a GIN context: the requests of its kernels. A watcher updates the trace ten times a second
     * ({@link ProcessTrace#watch}). The code that executes descriptors does no work for the trace.
     */
    public static final class GinTrace implements AutoCloseable {

        private final ProcessTrace process;
        private final int index;
        private final long base;
        private final int context;
        private boolean closed;

        GinTrace(ProcessTrace process, int index, long base, int context) {
            this.process = process;
            this.index = index;
            this.base = base;
            this.context = context;
        }

        /** Stores the number of executed descriptors of a kind. */
        public synchronized void served(GinFields.Kind kind, long count) {
            if (closed) {
                // The context is closed, and another object may use its block.
                return;
            }
            long at = base + GinFields.KINDS_OFFSET + (long) kind.ordinal() * Long.BYTES;
            long before = TraceMemory.get(at);
            if (count != before) {
                TraceMemory.set(at, count);
                if (kind == GinFields.Kind.FLUSH && FlightEvents.isRecording()) {
                    FlightEvents.flush(context, count - before);
                }
            }
        }

        /** Stores the taken and the completed position of a peer's queue, as unsigned numbers of 32 bits. */
        public synchronized void queue(int peer, int taken, int completed) {
            if (closed || peer >= GinFields.QUEUES) {
                return;
            }
            long at = base + TraceLayout.RECORD_BYTES + (long) peer * GinFields.QUEUE_BYTES;
            long takenNow = Integer.toUnsignedLong(taken);
            long completedNow = Integer.toUnsignedLong(completed);
            if (TraceMemory.get(at + GinFields.QUEUE_TAKEN_OFFSET) != takenNow
                    || TraceMemory.get(at + GinFields.QUEUE_COMPLETED_OFFSET) != completedNow) {
                TraceMemory.set(at + GinFields.QUEUE_TAKEN_OFFSET, takenNow);
                TraceMemory.set(at + GinFields.QUEUE_COMPLETED_OFFSET, completedNow);
                TraceMemory.set(at + GinFields.QUEUE_LAST_CHANGE_OFFSET, System.nanoTime());
            }
        }

        /** Closes the context's block. Called when the context is destroyed. May be called twice. */
        @Override
        public synchronized void close() {
            if (!closed) {
                closed = true;
                process.close(index);
            }
        }
    }
}
