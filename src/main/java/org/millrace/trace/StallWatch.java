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
import org.millrace.trace.TraceLayout.ConnectionFields;

/**
 * Tells, once for each stall, why nothing moves: on every rank of a communicator in which a connection stands still.
 * The trace's thread looks now and then at what this process has written down, and at the others' only where one of its
 * own connections stands still, or none moves.
 */
public final class StallWatch {

    private static final Logger LOG = LogManager.getLogger(StallWatch.class);
    private static final int LOOKS = 4;
    /** What the messages of stalls begin with: they are no failures of the process that has them. */
    private static final String TOLD = "nothing moves: ";

    /** Whether a closer look pays. */
    private final BooleanSupplier still;
    private final Hang.Reading reading;
    private final Duration quiet;
    private final Consumer<Verdict> tell;
    /** When the next look is due: nothing has stood still for longer than the process has been watched. */
    private long next;
    private int silencesSeen;
    private final AtomicBoolean looking = new AtomicBoolean();
    /** What was told to stand still, and when it had moved last; of the thread that looks. */
    private final Map<Object, Long> told = new HashMap<>();

    StallWatch(BooleanSupplier still, Hang.Reading reading, Duration quiet, Consumer<Verdict> tell) {
        this.still = still;
        this.reading = reading;
        this.quiet = quiet;
        this.tell = tell;
        next = System.nanoTime() + quiet.toNanos();
    }

    /**
     * Watches this process's connections while it lives.
     *
     * @param quiet for how long a connection stands still before it is told; zero: never
     * @param tell  gets the sentence, with what it is of
     */
    public static void start(ProcessTrace own, Duration quiet, Consumer<String> tell) {
        if (quiet.isZero()) {
            return;
        }
        Path directory = Objects.requireNonNull(own.path().getParent(), "a trace is in a directory");
        StallWatch watch = new StallWatch(() -> Stillness.of(own, quiet.toNanos()),
                () -> TraceReader.readAll(directory, (file, problem) -> LOG.debug("{}", file, problem)), quiet,
                verdict -> {
                    own.message(TOLD + verdict.sentence());
                    tell.accept((verdict.silence() == null ? "nothing moves. " : "") + verdict.sentence());
                });
        own.watch(() -> watch.glance(own.silences()));
    }

    /** Whether a message is the verdict on a stall. */
    static boolean isTold(String message) {
        return message.startsWith(TOLD);
    }

    /** Called by the trace's thread, which must not wait: a closer look has a thread of its own. */
    private void glance(int silences) {
        if (silences != silencesSeen) { // the link has been silent for long enough
            silencesSeen = silences;
            next = System.nanoTime();
        }
        if (isDue(System.nanoTime()) && still.getAsBoolean() && looking.compareAndSet(false, true)) {
            Thread.ofPlatform().daemon().name("look for stalls").start(this::lookAndEnd);
        }
    }

    boolean isDue(long now) {
        boolean due = now - next >= 0;
        if (due) {
            next = now + quiet.dividedBy(LOOKS).toNanos();
        }
        return due;
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
     * One look, which may take its time: what it tells was so when it began to read for the second time.
     *
     * @param now when it begins
     */
    void look(long now) throws IOException {
        List<Long> self = List.of(ProcessIdentity.CURRENT.pid());
        for (Verdict verdict : Hang.verdicts(reading, quiet)) {
            if (verdict.concerns(self)) {
                Long before = told.put(verdict.subject(), verdict.since());
                if (verdict.silence() != null) {
                    told.put(verdict.hash(), now); // which stands still for the link, whatever follows
                }
                if (before == null || verdict.since() - before > 0) {
                    tell.accept(verdict);
                }
            }
        }
    }

    /**
     * Which of this process's connections stand still, at a glance: no file is read, and next to nothing is allocated.
     */
    static final class Stillness {

        private static final long STALL_NANOS = 1_000_000_000;

        /** For each block: when its connection had last changed when Flight Recorder was told of its stall. */
        private final Map<Long, Long> told = new HashMap<>();

        Stillness() {}

        /**
         * Whether an open connection has stood still for so long with something posted, or none has moved, or a link is
         * silent.
         */
        static boolean of(ProcessTrace trace, long nanos) {
            long now = System.nanoTime();
            boolean moves = false;
            List<Long> blocks = trace.blocks();
            for (int i = 0; i < blocks.size(); i++) {
                long at = blocks.get(i);
                int state = TraceMemory.getInt(at + TraceLayout.STATE_OFFSET);
                int type = TraceMemory.getInt(at + TraceLayout.TYPE_OFFSET);
                if (type == TraceLayout.SILENCE && state == TraceLayout.OPEN) {
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

        /** Tells Flight Recorder of connections that have stood still for a second with something posted, each once. */
        void tellFlightRecorder(List<Long> blocks) {
            long now = System.nanoTime();
            for (Long at : blocks) {
                long last = TraceMemory.get(at + ConnectionFields.LAST_CHANGE_OFFSET);
                if (TraceMemory.getInt(at + TraceLayout.STATE_OFFSET) == TraceLayout.OPEN
                        && TraceMemory.getInt(at + TraceLayout.TYPE_OFFSET) == TraceLayout.CONNECTION && last != 0
                        && now - last > STALL_NANOS && isPosted(at) && !Long.valueOf(last).equals(told.put(at, last))) {
                    FlightEvents.stall(at, now - last);
                }
            }
        }
    }
}
