package org.millrace.cli;

import java.io.PrintWriter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.millrace.config.ValueTypes;
import org.millrace.engine.bootstrap.RemoteFailure;

/**
 * Runs ranks to their end: starts them, hears what they report, and ends all of them when one fails or the deadline
 * passes. Every command with ranks runs them by this loop. Used by one thread.
 */
final class RankRun<E extends RankEvent> {

    /** Why a run ended early: a sentence, and a stack trace or nothing. */
    record Failure(String message, String trace) {
    }

    /** What a command does with what its ranks report. Called on the thread that runs. */
    interface Listener<E extends RankEvent> {

        /** A rank has reported something that is not its end. */
        void heard(E event);

        /** Some time has passed without an event. */
        default void waiting() {}

        /** What to say when the deadline has passed. */
        default String overdue(RunDeadline deadline) {
            return "not finished after " + ValueTypes.DurationType.text(deadline.allowed()) + " (--deadline)";
        }
    }

    interface Launcher {
        Ranks launch(String rendezvous, Consumer<RankEvent> events);
    }

    private static final Duration TICK = Duration.ofMillis(500);
    /**
     * When one rank fails, others do because of it, and its own word may arrive after theirs. All are heard before the
     * ranks are ended; nobody waits longer than this.
     */
    private static final Duration SETTLE = Duration.ofSeconds(2);
    /** For threads or processes whose rank has finished. */
    private static final Duration LEAVE = Duration.ofMinutes(1);

    private final int size;
    private final Class<E> type;
    private final Listener<E> listener;
    private final BlockingQueue<RankEvent> queue = new LinkedBlockingQueue<>();
    private final List<RankEvent.Failed> failed = new ArrayList<>();
    private int ended;

    static void print(List<Failure> failures, PrintWriter err, boolean traces) {
        for (Failure failure : failures) {
            err.println("millrace: " + failure.message());
            if (traces) {
                err.print(failure.trace());
            }
        }
        err.flush();
    }

    private RankRun(int size, Class<E> type, Listener<E> listener) {
        this.size = size;
        this.type = type;
        this.listener = listener;
    }

    /** Runs to the end; no rank outlives this call. Returns why it is not complete, the likeliest cause first. */
    static <E extends RankEvent> List<Failure> run(int size, Launcher launcher, RunDeadline deadline, Class<E> type,
            Listener<E> listener) {
        RankRun<E> run = new RankRun<>(size, type, listener);
        try (RunScope scope = new RunScope()) {
            Ranks ranks = launcher.launch(scope.rendezvous(), run.queue::add);
            scope.owns(ranks);
            return run.run(ranks, deadline); // what still runs then ends with the scope
        }
    }

    private List<Failure> run(Ranks ranks, RunDeadline deadline) {
        ranks.start();
        try {
            while (ended < size && failed.isEmpty()) {
                if (!hear(deadline.remaining(TICK))) {
                    if (deadline.passed()) {
                        return List.of(new Failure(listener.overdue(deadline), ""));
                    }
                    listener.waiting();
                }
            }
            if (failed.isEmpty()) {
                ranks.awaitEnd(deadline.remaining(LEAVE));
                return List.of();
            }
            RunDeadline settled = RunDeadline.after(SETTLE);
            while (ended < size && !settled.passed()) {
                hear(settled.remaining());
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            return List.of(new Failure("the run was interrupted", ""));
        }
        // one that died is the cause of what the others say, and cannot say so itself
        return failed.stream()
                .sorted(Comparator.comparing(failure -> !failure.died()))
                .map(failure -> new Failure(
                        "rank " + failure.rank() + ": " + RemoteFailure.withoutRank(failure.rank(), failure.message()),
                        failure.trace()))
                .toList();
    }

    /** Handles one event; false if none came in that time. */
    private boolean hear(Duration patience) throws InterruptedException {
        RankEvent event = queue.poll(patience.toNanos(), TimeUnit.NANOSECONDS);
        switch (event) {
            case null -> {
                return false;
            }
            case RankEvent.Finished _ -> ended++;
            case RankEvent.Failed failure -> {
                ended++;
                failed.add(failure);
            }
            default -> listener.heard(type.cast(event));
        }
        return true;
    }
}
