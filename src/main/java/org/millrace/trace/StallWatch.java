package org.millrace.trace;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.millrace.file.ProcessIdentity;
import org.millrace.trace.ConnectionIdentity.Direction;
import org.millrace.trace.TraceLayout.CommunicatorFields;
import org.millrace.trace.TraceLayout.ConnectionFields;

/**
 * Reports, once for each stall, why a communicator makes no progress. Every process with a rank of the communicator
 * reports the stall. The trace's thread periodically examines this process's own trace. The traces of other processes
 * are read only if a connection of this process stalls, no connection has made progress, or a link is silent.
 */
public final class StallWatch {

    private static final Logger LOG = LogManager.getLogger(StallWatch.class);
    private static final int CHECKS_PER_STALL = 4;
    /** Number of due checks for each examination of the traces while no rank seems to be in an operation. */
    private static final int CHECKS_PER_IDLE_LOOK = 3 * CHECKS_PER_STALL;
    /**
     * Prefix of messages about stalls. A message with this prefix does not mean that the reporting process has failed.
     */
    private static final String REPORT_PREFIX = "nothing moves: ";

    /** Condition under which the traces of other processes are read. */
    private final BooleanSupplier still;
    /** Whether a rank of this process possibly waits in an operation. */
    private final BooleanSupplier inOperation;
    private final Hang.Reading reading;
    private final Duration quiet;
    private final Consumer<Verdict> report;
    /**
     * Time of the next check, as {@link System#nanoTime()}. The first check is due {@link #quiet} after the start.
     * Before that time, no stall can have lasted for {@link #quiet}.
     */
    private long next;
    /** Number of successive checks that found no rank in an operation. */
    private int idleChecks;
    private int silencesSeen;
    private final AtomicBoolean looking = new AtomicBoolean();
    /** Whether any rank was in an operation when the traces were last read. Written by the thread that reads them. */
    private volatile boolean anyInside;
    private final Reported reported = new Reported();

    StallWatch(BooleanSupplier still, BooleanSupplier inOperation, Hang.Reading reading, Duration quiet,
            Consumer<Verdict> report) {
        this.still = still;
        this.inOperation = inOperation;
        this.reading = reading;
        this.quiet = quiet;
        this.report = report;
        next = System.nanoTime() + quiet.toNanos();
    }

    /**
     * Watches this process's connections until the process ends.
     *
     * @param quiet  minimum time without progress after which a connection is reported; zero disables reports
     * @param report receives the text of each report
     */
    public static void start(ProcessTrace own, Duration quiet, Consumer<String> report) {
        if (quiet.isZero()) {
            return;
        }
        Path directory = Objects.requireNonNull(own.path().getParent(), "a trace is in a directory");
        StallWatch watch = new StallWatch(() -> Stillness.of(own, quiet.toNanos()), () -> Stillness.inOperation(own),
                new GroupReading(directory, own.path()), quiet, verdict -> {
                    own.message(REPORT_PREFIX + verdict.sentence());
                    report.accept((verdict.silence() == null ? "nothing moves. " : "") + verdict.sentence());
                });
        own.watch(() -> watch.check(own.silences()));
    }

    /** Returns whether a message is the verdict on a stall. */
    static boolean isReport(String message) {
        return message.startsWith(REPORT_PREFIX);
    }

    /**
     * Checks this process's own trace. Called by the trace's thread, which must not block. A separate thread reads the
     * traces of other processes.
     */
    private void check(int silences) {
        // A new silence is checked immediately, because a silence is recorded only after the link has been silent for
        // long enough.
        if (silences != silencesSeen) {
            silencesSeen = silences;
            next = System.nanoTime();
            idleChecks = CHECKS_PER_IDLE_LOOK - 1;
        }
        if (isDue(System.nanoTime()) && still.getAsBoolean() && looking.compareAndSet(false, true)) {
            Thread.ofPlatform().daemon().name("look for stalls").start(this::lookAndEnd);
        }
    }

    /**
     * Returns whether the traces must be examined now. While no rank seems to be in an operation, the traces are
     * examined less often. Each examination costs an idle process milliseconds. The first examination costs a tenth of
     * a second, mostly for the JIT compiler.
     */
    boolean isDue(long now) {
        if (now - next < 0) {
            return false;
        }
        next = now + quiet.toNanos() / CHECKS_PER_STALL;
        boolean isIdle = !anyInside && !inOperation.getAsBoolean();
        idleChecks = isIdle ? (idleChecks + 1) % CHECKS_PER_IDLE_LOOK : 0;
        return !isIdle || idleChecks == 0;
    }

    private void lookAndEnd() {
        try {
            look(System.nanoTime());
        } catch (IOException | RuntimeException failure) {
            LOG.debug("cannot look for stalls", failure);
        } finally {
            looking.set(false);
        }
    }

    /**
     * Reads all traces twice and reports each verdict once. The call may take time. Every reported fact was true when
     * the second reading began.
     *
     * @param now time when the call begins
     */
    void look(long now) throws IOException {
        List<Long> self = List.of(ProcessIdentity.CURRENT.pid());
        for (Verdict verdict : Hang.verdicts(this::read, quiet)) {
            // A communicator of only ended processes does not belong to this process, even if an ended process had this
            // process's ID.
            if (verdict.cause() != Verdict.Cause.ENDED && verdict.concerns(self) && reported.add(verdict, now)) {
                report.accept(verdict);
            }
        }
    }

    private List<TracedProcess> read() throws IOException {
        List<TracedProcess> all = reading.read();
        anyInside = all.stream()
                .flatMap(process -> process.communicators().stream())
                .anyMatch(communicator -> communicator.begun() > communicator.ended());
        return all;
    }

    /** Reported stalls. Progress ends a stall. Used by one thread at a time. */
    public static final class Reported {

        /** Subjects of verdicts, with the time of their last progress. */
        private final Map<Object, Long> progress = new HashMap<>();

        /**
         * Marks the stall of a verdict as reported. Returns false if the stall was marked before.
         *
         * @param now time when the reading of the traces began
         */
        public boolean add(Verdict verdict, long now) {
            Long before = progress.put(verdict.subject(), verdict.since());
            if (verdict.silence() != null) {
                // The silent link explains the stall of this communicator, so the communicator counts as reported.
                progress.put(verdict.communicator(), now);
            }
            return before == null || verdict.since() - before > 0;
        }
    }

    /** Finds this process's connections that make no progress. Reads no file and allocates almost nothing. */
    static final class Stillness {

        private static final long STALL_NANOS = 1_000_000_000;

        /**
         * Time of the last change of each connection whose stall was reported to Flight Recorder. The key is the
         * address of the connection's block.
         */
        private final Map<Long, Long> reported = new HashMap<>();

        Stillness() {}

        /**
         * Returns whether the traces of other processes must be read, for one of three reasons. First, a connection
         * that has failed, or an open connection with posted or unconsumed data, has made no progress for {@code
         * nanos}. Second, no connection at all has made progress for {@code nanos}. Third, a link is silent, or a rank
         * joins or connects.
         */
        static boolean of(ProcessTrace trace, long nanos) {
            long now = System.nanoTime();
            boolean moves = false;
            List<Long> blocks = trace.blocks();
            for (int i = 0; i < blocks.size(); i++) {
                long at = blocks.get(i);
                int state = TraceMemory.getInt(at + TraceLayout.STATE_OFFSET);
                int type = TraceMemory.getInt(at + TraceLayout.TYPE_OFFSET);
                if ((type == TraceLayout.SILENCE || type == TraceLayout.JOIN) && state == TraceLayout.OPEN) {
                    return true;
                }
                if (type != TraceLayout.CONNECTION || state != TraceLayout.OPEN && state != TraceLayout.FAILED) {
                    continue;
                }
                boolean still = now - TraceMemory.get(at + ConnectionFields.LAST_CHANGE_OFFSET) >= nanos;
                if (still && (state == TraceLayout.FAILED || isPosted(at) || isUnconsumed(at))) {
                    return true;
                }
                moves |= !still;
            }
            return !moves;
        }

        /**
         * Returns whether a rank of this process possibly waits for others in an operation, joins or connects. The
         * result is false only if no rank joins or connects, all communicators report their kernels, and all their
         * operations have ended.
         */
        static boolean inOperation(ProcessTrace trace) {
            boolean known = false;
            for (long at : trace.blocks()) {
                int type = TraceMemory.getInt(at + TraceLayout.TYPE_OFFSET);
                if (TraceMemory.getInt(at + TraceLayout.STATE_OFFSET) != TraceLayout.OPEN
                        || type != TraceLayout.COMMUNICATOR && type != TraceLayout.GIN && type != TraceLayout.JOIN) {
                    continue;
                }
                known = true;
                if (type != TraceLayout.COMMUNICATOR || TraceMemory.getInt(at + CommunicatorFields.KERNELS_OFFSET) == 0
                        || TraceMemory.get(at + CommunicatorFields.ENQUEUED_OFFSET) != TraceMemory
                                .get(at + CommunicatorFields.ENDED_COUNT_OFFSET)) {
                    return true;
                }
            }
            return !known;
        }

        private static boolean isPosted(long at) {
            long taken = TraceMemory.get(at + ConnectionFields.TAKEN_OFFSET);
            return taken != TraceMemory.get(at + ConnectionFields.DONE_OFFSET)
                    || TraceMemory.get(at + ConnectionFields.BLOCKED_OFFSET) - taken >= 0;
        }

        private static boolean isUnconsumed(long at) {
            return TraceMemory.getInt(at + ConnectionFields.DIRECTION_OFFSET) == Direction.RECEIVE.ordinal()
                    && TraceMemory.get(at + ConnectionFields.DONE_OFFSET)
                            - TraceMemory.get(at + ConnectionFields.CONSUMED_OFFSET) > 0;
        }

        /**
         * Reports connections with incomplete or blocked steps to Flight Recorder if they have made no progress for a
         * second. Reports each stall once.
         */
        void tellFlightRecorder(List<Long> blocks) {
            long now = System.nanoTime();
            for (Long at : blocks) {
                long last = TraceMemory.get(at + ConnectionFields.LAST_CHANGE_OFFSET);
                if (TraceMemory.getInt(at + TraceLayout.STATE_OFFSET) == TraceLayout.OPEN
                        && TraceMemory.getInt(at + TraceLayout.TYPE_OFFSET) == TraceLayout.CONNECTION && last != 0
                        && now - last > STALL_NANOS && isPosted(at)
                        && !Long.valueOf(last).equals(reported.put(at, last))) {
                    FlightEvents.stall(at, now - last);
                }
            }
        }
    }
}
