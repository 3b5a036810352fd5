package org.millrace.cli.perf;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.millrace.cli.launch.RankEvent;
import org.millrace.cli.launch.Ranks;
import org.millrace.cli.launch.RunDeadline;
import org.millrace.config.DurationType;

/**
 * Lets ranks carry out a plan, collects what they report, and ends all of them when one fails or the deadline passes.
 * Used by one thread.
 */
final class PerfRun {

    /** Why a run ended early: a sentence, and a stack trace or nothing. */
    record Failure(String message, String trace) {
    }

    /** Shows the course of a run. */
    interface Display {

        /** All ranks have joined. */
        void joined();

        /** A line is complete. */
        void row(PerfResults.Row row);

        /** Some time has passed without anything to show. */
        void waiting();
    }

    private static final Duration TICK = Duration.ofMillis(500);
    /**
     * When one rank fails, others do because of it, and its own word may arrive after theirs. All are heard before the
     * ranks are ended; nobody waits longer than this.
     */
    private static final Duration SETTLE = Duration.ofSeconds(2);

    private final PerfPlan plan;
    private final PerfResults results;
    private final Display display;
    private final BlockingQueue<RankEvent> queue = new LinkedBlockingQueue<>();

    private final List<RankEvent.Failed> failed = new ArrayList<>();
    private int ended;

    PerfRun(PerfPlan plan, PerfResults results, Display display) {
        this.plan = plan;
        this.results = results;
        this.display = display;
    }

    /** Where the ranks report. Safe from any thread. */
    Consumer<RankEvent> events() {
        return queue::add;
    }

    /**
     * Runs to the end.
     *
     * @param ranks ranks that have not been started, and whose events come to {@link #events()}
     * @return why the run is not complete, the likeliest cause first; empty if it is complete
     */
    List<Failure> run(Ranks ranks) {
        RunDeadline deadline = RunDeadline.after(plan.deadline());
        ranks.start();
        while (ended < plan.ranks() && failed.isEmpty()) {
            if (!take(deadline)) {
                if (deadline.passed()) {
                    List<Failure> overdue = overdue();
                    ranks.stop();
                    return overdue;
                }
                display.waiting();
            }
        }
        if (failed.isEmpty()) {
            ranks.awaitEnd(deadline.remaining());
            return List.of();
        }
        RunDeadline settled = RunDeadline.after(SETTLE);
        while (ended < plan.ranks() && !settled.passed()) {
            take(settled);
        }
        ranks.stop();
        // one that died is the cause of what the others say, and cannot say so itself
        return failed.stream()
                .sorted(Comparator.comparing(failure -> !failure.died()))
                .map(failure -> new Failure("rank " + failure.rank() + ": " + failure.message(), failure.trace()))
                .toList();
    }

    /** Handles one event; false if none came in a while. */
    private boolean take(RunDeadline deadline) {
        RankEvent event;
        try {
            Duration wait = deadline.remaining().compareTo(TICK) < 0 ? deadline.remaining() : TICK;
            event = queue.poll(wait.toNanos(), TimeUnit.NANOSECONDS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            event = new RankEvent.Failed(0, "the run was interrupted", "", false);
        }
        if (event == null) {
            return false;
        }
        switch (event) {
            case RankEvent.Joined joined -> {
                results.add(joined);
                if (results.allJoined()) {
                    display.joined();
                }
            }
            case RankEvent.Routed routed -> results.add(routed);
            case RankEvent.Measured measured -> {
                results.add(measured);
                results.takeComplete().forEach(display::row);
            }
            case RankEvent.Checked checked ->
                throw new IllegalStateException("rank " + checked.rank() + " is not part of a matrix");
            case RankEvent.Noted noted -> throw new IllegalStateException(
                    "rank " + noted.rank() + " has no place for \"" + noted.text() + "\" in the table");
            case RankEvent.Befallen befallen -> results.add(befallen);
            case RankEvent.Finished finished -> ended++;
            case RankEvent.Failed failure -> {
                ended++;
                failed.add(failure);
            }
        }
        return true;
    }

    private List<Failure> overdue() {
        List<String> whereabouts = new ArrayList<>();
        for (int rank = 0; rank < plan.ranks(); rank++) {
            whereabouts.add(results.whereabouts(rank));
        }
        return List.of(new Failure("not finished after " + DurationType.text(plan.deadline()) + " (--deadline): "
                + String.join(", ", whereabouts), ""));
    }
}
