package org.millrace.trace.why;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.function.Consumer;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.millrace.trace.ProcessTrace;
import org.millrace.trace.reader.TraceReader;
import org.millrace.trace.reader.TracedConnection;
import org.millrace.trace.reader.TracedProcess;
import org.millrace.trace.reader.TracedState;

/**
 * Tells, once for each stall, why nothing moves: on every rank of a communicator in which a connection stands still.
 * The trace's thread looks now and then at what this process has written down, and at the others' only where one of its
 * own connections stands still, or none moves.
 */
public final class StallWatch {

    private static final Logger LOG = LogManager.getLogger(StallWatch.class);
    private static final int LOOKS = 4;

    private final ProcessTrace own;
    private final Duration quiet;
    private final Consumer<String> tell;
    /** When the next look is due. */
    private long next = System.nanoTime();
    /** Communicators that stand still, and of which that was told. */
    private final Set<Long> told = new HashSet<>();

    StallWatch(ProcessTrace own, Duration quiet, Consumer<String> tell) {
        this.own = own;
        this.quiet = quiet;
        this.tell = tell;
    }

    /**
     * Watches this process's connections while it lives.
     *
     * @param own   its trace
     * @param quiet for how long a connection stands still before it is told; zero: never
     * @param tell  gets the sentence
     */
    public static void start(ProcessTrace own, Duration quiet, Consumer<String> tell) {
        if (quiet.isZero()) {
            return;
        }
        StallWatch watch = new StallWatch(own, quiet, sentence -> aside(() -> tell.accept(sentence)));
        own.watch(watch::lookNowAndThen);
    }

    /** A standard error that nobody reads must not hold the trace. */
    private static void aside(Runnable telling) {
        Thread.ofPlatform().daemon().name("told of a stall").start(telling);
    }

    private void lookNowAndThen() {
        long now = System.nanoTime();
        if (now - next < 0) {
            return;
        }
        next = now + quiet.dividedBy(LOOKS).toNanos();
        try {
            look();
        } catch (IOException | RuntimeException failure) {
            LOG.debug("cannot look for stalls", failure);
        }
    }

    /** One look. */
    void look() throws IOException {
        TracedProcess self = TraceReader.read(own.path());
        if (!standsStill(self)) {
            told.removeIf(hash -> self.connections()
                    .stream()
                    .anyMatch(connection -> connection.identity().communicator() == hash && isNew(self, connection)));
            return;
        }
        Path directory = Objects.requireNonNull(own.path().getParent(), "a trace is in a directory");
        List<TracedProcess> all = TraceReader.readAll(directory, (file, problem) -> LOG.debug("{}", file, problem));
        Set<Long> still = new HashSet<>();
        List<Long> pid = List.of(self.identity().pid());
        for (Verdict verdict : Hang.verdicts(all, quiet)) {
            if (verdict.concerns(pid)) {
                still.add(verdict.hash());
                if (told.add(verdict.hash())) {
                    own.message(verdict.sentence());
                    tell.accept(verdict.sentence());
                }
            }
        }
        told.retainAll(still);
    }

    /** Whether a connection stands still with something posted, or none has moved for long. */
    private boolean standsStill(TracedProcess self) {
        boolean moves = false;
        for (TracedConnection each : self.connections()) {
            if (each.state() != TracedState.CLOSED) {
                boolean still = !isNew(self, each);
                if (still
                        && (each.state() == TracedState.FAILED || each.standing() != TracedConnection.Standing.IDLE)) {
                    return true;
                }
                moves |= !still;
            }
        }
        return !moves;
    }

    private boolean isNew(TracedProcess self, TracedConnection connection) {
        return self.read() - connection.lastChange() < quiet.toNanos();
    }
}
