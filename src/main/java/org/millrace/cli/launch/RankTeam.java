package org.millrace.cli.launch;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.IntFunction;
import java.util.function.ObjIntConsumer;
import org.millrace.cli.console.FailureText;
import org.millrace.config.DurationType;

/**
 * Ranks in processes of their own, each a host to NCCL, for measurements that are not of a
 * {@link org.millrace.Communicator}'s operations.
 */
public final class RankTeam {

    /** When one rank fails, others do because of it, and its own word may arrive after theirs. */
    private static final Duration SETTLE = Duration.ofSeconds(2);

    /**
     * What one rank measured.
     *
     * @param rank  who
     * @param index of the case in the plan
     * @param nanos time of one operation; 0 if the rank only looked at what arrived
     * @param wrong bytes that are not what they should be
     */
    public record Measured(int rank, int index, double nanos, long wrong) {
    }

    /** What a rank does. */
    public interface Work {
        /**
         * Runs the rank to its end.
         *
         * @param results takes what it measured
         * @param notes   takes lines for the user
         * @throws Exception if it failed, which the parent and the user are told
         */
        void run(Consumer<Measured> results, Consumer<String> notes) throws Exception;
    }

    private RankTeam() {}

    /**
     * Runs all ranks to their end, or until one fails or the deadline passes: then all are ended.
     *
     * @param size     number of ranks
     * @param command  the command of a rank, by its number and where it meets the others; what it starts calls
     *                 {@link #work}
     * @param deadline for everything together
     * @param err      what ranks write besides
     * @param results  takes what they measured, on this thread
     * @param notes    takes lines for the user by rank, on this thread
     * @return why the run is not complete, the likeliest cause first; empty if it is complete
     */
    public static List<String> run(int size, Function<String, IntFunction<List<String>>> command, Duration deadline,
            PrintWriter err, Consumer<Measured> results, ObjIntConsumer<String> notes) {
        BlockingQueue<RankEvent> queue = new LinkedBlockingQueue<>();
        RunDeadline end = RunDeadline.after(deadline);
        try (RunScope scope = new RunScope()) {
            ProcessRanks ranks = new ProcessRanks(size, command.apply(scope.rendezvous()), RankProcess::environmentOf,
                    queue::add, err);
            scope.owns(ranks);
            ranks.start();
            List<RankEvent.Failed> failed = new ArrayList<>();
            for (int ended = 0; ended < size;) {
                RankEvent event = next(queue, failed.isEmpty() ? end : end.sooner(SETTLE));
                switch (event) {
                    case null -> {
                        return failed.isEmpty()
                                ? List.of("not finished after " + DurationType.text(deadline) + " (--deadline)")
                                : texts(failed);
                    }
                    case RankEvent.Measured measured -> results.accept(new Measured(measured.rank(), measured.index(),
                            measured.outOfPlace().nanos(), measured.outOfPlace().wrong()));
                    case RankEvent.Failed failure -> {
                        ended++;
                        failed.add(failure);
                    }
                    case RankEvent.Noted noted -> notes.accept(noted.text(), noted.rank());
                    case RankEvent.Finished _ -> ended++;
                    case RankEvent.Joined _,RankEvent.Routed _,RankEvent.Checked _,RankEvent.Befallen _ -> {
                    }
                }
            }
            if (failed.isEmpty()) {
                ranks.awaitEnd(end.remaining());
            }
            return texts(failed);
        }
    }

    /** Null if none came in time. */
    private static RankEvent next(BlockingQueue<RankEvent> queue, RunDeadline deadline) {
        try {
            return queue.poll(deadline.remaining().toNanos(), TimeUnit.NANOSECONDS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            return null;
        }
    }

    /** One that died is the cause of what the others say, and cannot say so itself. */
    private static List<String> texts(List<RankEvent.Failed> failed) {
        return failed.stream()
                .sorted(Comparator.comparing(failure -> !failure.died()))
                .map(failure -> "rank " + failure.rank() + ": " + failure.message())
                .toList();
    }

    /**
     * Runs a rank in a process that {@link #run} started. Never throws: the parent is told of failures. The process
     * ends when the parent does.
     *
     * @param rank this rank
     * @param work what it does
     */
    public static void work(int rank, Work work) {
        Consumer<RankEvent> parent = RankMain.toParent();
        RankMain.watchParent(() -> {});
        try {
            work.run(
                    measured -> parent.accept(new RankEvent.Measured(rank, measured.index(),
                            new CaseResult(measured.nanos(), measured.wrong()), CaseResult.NONE)),
                    text -> parent.accept(new RankEvent.Noted(rank, text)));
            parent.accept(new RankEvent.Finished(rank));
        } catch (Throwable failure) { // whatever it is, the other ranks must hear of it
            StringWriter trace = new StringWriter();
            failure.printStackTrace(new PrintWriter(trace, true));
            parent.accept(new RankEvent.Failed(rank, FailureText.of(failure), trace.toString(), false));
        }
    }
}
