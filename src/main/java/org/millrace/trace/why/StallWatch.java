package org.millrace.trace.why;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.millrace.trace.ProcessTrace;
import org.millrace.trace.reader.TraceReader;
import org.millrace.trace.reader.TracedConnection;
import org.millrace.trace.reader.TracedProcess;
import org.millrace.trace.reader.TracedState;

/**
 * Tells, once for each stall, why nothing moves: on every rank of a communicator in which a connection stands still. A
 * thread that looks now and then at what this process has written down, and at the others' only where none of its own
 * connections moves.
 */
public final class StallWatch {

    private static final Logger LOG = LogManager.getLogger(StallWatch.class);
    private static final int LOOKS = 4;
    private static final Duration LEAST = Duration.ofMillis(100);

    private final ProcessTrace own;
    private final Duration quiet;
    private final Consumer<String> tell;
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
        StallWatch watch = new StallWatch(own, quiet, tell);
        Duration part = quiet.dividedBy(LOOKS);
        long pause = (part.compareTo(LEAST) < 0 ? LEAST : part).toNanos();
        Thread.ofPlatform().daemon().name("millrace-why").start(() -> watch.run(pause));
    }

    private void run(long pause) {
        while (true) {
            LockSupport.parkNanos(pause);
            try {
                look();
            } catch (IOException | RuntimeException failure) {
                LOG.debug("cannot look for stalls", failure);
            }
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
