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
            look();
        } catch (IOException | RuntimeException failure) {
            LOG.debug("cannot look for stalls", failure);
        } finally {
            looking.set(false);
        }
    }

    /** One look, which may take its time: what it tells was so when it began to read for the second time. */
    void look() throws IOException {
        List<Long> self = List.of(ProcessIdentity.CURRENT.pid());
        for (Verdict verdict : Hang.verdicts(reading, quiet)) {
            if (verdict.concerns(self)) {
                Long before = told.put(verdict.subject(), verdict.since());
                if (verdict.silence() != null) {
                    told.put(verdict.hash(), System.nanoTime()); // which stands still for the link, whatever follows
                }
                if (before == null || verdict.since() - before > 0) {
                    tell.accept(verdict);
                }
            }
        }
    }
}
