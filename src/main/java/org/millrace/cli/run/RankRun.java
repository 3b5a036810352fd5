package org.millrace.cli.run;

import java.io.PrintWriter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.millrace.bootstrap.RemoteFailure;
import org.millrace.config.ValueTypes;

/**
 * Runs ranks until all have ended. Starts the ranks, receives their reports, and ends all ranks when one fails or the
 * deadline passes. Every command with ranks uses this loop. Used by one thread.
 */
public final class RankRun<E extends RankEvent> {

    /** Reason why a run ended early: a sentence and a stack trace, which may be empty. */
    public record Failure(String message, String trace) {
    }

    /** Receives the ranks' reports for a command. Called on the thread that runs the loop. */
    public interface Listener<E extends RankEvent> {

        /** Handles a report, except for the last report of a rank. */
        void heard(E event);

        /** Called when no event has arrived for some time. */
        default void waiting() {}

        /** Returns the message for a run that has exceeded its deadline. */
        default String overdue(RunDeadline deadline) {
            return "not finished after " + ValueTypes.DurationType.text(deadline.allowed()) + " (--deadline)";
        }
    }

    public interface Launcher {
        Ranks launch(String rendezvous, Consumer<RankEvent> events);
    }

    private static final Duration TICK = Duration.ofMillis(500);
    /**
     * Maximum time to collect further failures after the first failure. Further failures are collected, because one
     * rank's failure makes other ranks fail, and the report of the original failure may arrive last. The ranks are
     * ended when all reports are collected, or after this time.
     */
    private static final Duration SETTLE = Duration.ofSeconds(2);
    /** Maximum time to wait until the threads or processes of finished ranks end. */
    private static final Duration LEAVE = Duration.ofMinutes(1);

    private final int size;
    private final Class<E> type;
    private final Listener<E> listener;
    private final BlockingQueue<RankEvent> queue = new LinkedBlockingQueue<>();
    private final List<RankEvent.Failed> failed = new ArrayList<>();
    private int ended;

    public static void print(List<Failure> failures, PrintWriter err, boolean traces) {
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

    /**
     * Runs ranks until all have ended. No rank outlives this call. Returns the reasons why the run is not complete, the
     * likeliest cause first; an empty list for a complete run.
     */
    public static <E extends RankEvent> List<Failure> run(int size, Launcher launcher, RunDeadline deadline,
            Class<E> type, Listener<E> listener) {
        RankRun<E> run = new RankRun<>(size, type, listener);
        try (RunScope scope = new RunScope()) {
            Ranks ranks = launcher.launch(scope.rendezvous(), run.queue::add);
            scope.owns(ranks);
            return run.run(ranks, deadline); // closing the scope ends the ranks that still run
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
        // the death of a rank's process causes the other failures, so the message about the death is the first
        return failed.stream()
                .sorted(Comparator.comparing(failure -> !failure.died()))
                .map(failure -> new Failure(
                        "rank " + failure.rank() + ": " + RemoteFailure.withoutRank(failure.rank(), failure.message()),
                        failure.trace()))
                .toList();
    }

    /** Handles one event. Returns false if no event arrived within the given time. */
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
