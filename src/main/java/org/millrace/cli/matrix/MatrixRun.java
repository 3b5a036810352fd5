package org.millrace.cli.matrix;

import java.io.PrintWriter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import org.millrace.cli.console.JavaCommand;
import org.millrace.cli.launch.ProcessRanks;
import org.millrace.cli.launch.RankEvent;
import org.millrace.cli.launch.Ranks;
import org.millrace.cli.launch.RunScope;
import org.millrace.cli.launch.ThreadRanks;

/** Lets ranks go through the groups: the same threads or processes for all groups of a number of ranks. */
final class MatrixRun {

    private static final long TICK_NANOS = 500_000_000;

    private final MatrixPlan plan;
    private final Map<String, String> settings;
    private final BiFunction<Integer, String, List<String>> arguments;
    private final PrintWriter err;
    private final MatrixProgress progress;
    private final long end;
    private final List<CellResult> results = new ArrayList<>();

    /**
     * A run.
     *
     * @param arguments a rank's command line, for its number and rendezvous
     * @param err       receives what ranks write besides
     * @param terminal  whether {@code err} is one
     * @param deadline  when everything has to be finished
     */
    MatrixRun(MatrixPlan plan, Map<String, String> settings, BiFunction<Integer, String, List<String>> arguments,
            PrintWriter err, boolean terminal, Duration deadline) {
        this.plan = plan;
        this.settings = settings;
        this.arguments = arguments;
        this.err = err;
        this.end = System.nanoTime() + deadline.toNanos();
        plan.groups().forEach(group -> group.cells().forEach(cell -> results.add(new CellResult(group, cell))));
        this.progress = new MatrixProgress(err, terminal, results.size());
    }

    /** By the cells' numbers. */
    List<CellResult> run() {
        for (boolean processes : new boolean[] {false, true}) {
            for (int ranks : plan.groups()
                    .stream()
                    .filter(group -> group.processes() == processes)
                    .map(CellGroup::ranks)
                    .distinct()
                    .toList()) {
                List<CellGroup> runnable = plan.groups(ranks, processes);
                if (!runnable.isEmpty()) {
                    run(ranks, processes, runnable);
                }
            }
        }
        return results;
    }

    private void run(int ranks, boolean processes, List<CellGroup> groups) {
        BlockingQueue<RankEvent> queue = new LinkedBlockingQueue<>();
        progress.begin(groups.getFirst());
        try (RunScope scope = new RunScope()) {
            Ranks running = processes
                    ? new ProcessRanks(ranks,
                            rank -> JavaCommand.of(arguments.apply(rank, ranks + ":" + scope.rendezvous())),
                            _ -> Map.of(), queue::add, err)
                    : new ThreadRanks(ranks, rank -> new MatrixWorker(groups, rank, scope.rendezvous(), settings,
                            plan.seed(), queue::add));
            scope.owns(running);
            running.start();
            String why = hear(queue, ranks);
            if (why.isEmpty()) {
                running.awaitEnd(Duration.ofSeconds(10));
            } else {
                running.stop();
            }
            groups.stream()
                    .flatMap(group -> group.cells().stream())
                    .map(cell -> results.get(cell.number()))
                    .filter(result -> !result.isComplete())
                    .forEach(result -> {
                        result.fail(why.isEmpty() ? "not every rank reported it" : why);
                        progress.add(result);
                    });
        } finally {
            progress.end();
        }
    }

    /** Returns why ranks did not finish; empty if they did. */
    private String hear(BlockingQueue<RankEvent> queue, int ranks) {
        for (int finished = 0; finished < ranks;) {
            long left = end - System.nanoTime();
            RankEvent event;
            try {
                event = queue.poll(Math.min(left, TICK_NANOS), TimeUnit.NANOSECONDS);
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
                return "the run was interrupted";
            }
            switch (event) {
                case null -> {
                    if (left <= TICK_NANOS) {
                        return "not finished in time (--deadline)";
                    }
                    progress.tick();
                }
                case RankEvent.Checked checked -> add(checked);
                case RankEvent.Failed failed -> {
                    return "rank " + failed.rank() + ": " + failed.message();
                }
                case RankEvent.Finished _ -> finished++;
                default -> throw new IllegalStateException("no rank of a matrix says " + event);
            }
        }
        return "";
    }

    private void add(RankEvent.Checked checked) {
        CellResult result = results.get(checked.cell());
        result.add(checked);
        if (result.isComplete()) {
            progress.add(result);
        }
    }
}
