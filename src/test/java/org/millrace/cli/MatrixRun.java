package org.millrace.cli;

import java.io.PrintWriter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.BiFunction;
import org.millrace.cli.run.ProcessRanks;
import org.millrace.cli.run.RankRun;
import org.millrace.cli.run.RunDeadline;
import org.millrace.cli.run.ThreadRanks;

/** Runs the groups of cells on ranks. All groups with the same number of ranks use the same threads or processes. */
final class MatrixRun implements RankRun.Listener<MatrixWorker.CellReport> {

    private final MatrixPlan plan;
    private final Map<String, String> settings;
    private final BiFunction<Integer, String, List<String>> arguments;
    private final PrintWriter err;
    private final long start = System.nanoTime();
    private final RunDeadline deadline;
    private final List<CellResult> results = new ArrayList<>();

    /**
     * Creates a run.
     *
     * @param arguments function that returns a rank's command line for the rank's number and rendezvous
     * @param err       receives other output of the ranks, and the progress of the run
     * @param deadline  time by which all groups must be finished
     */
    MatrixRun(MatrixPlan plan, Map<String, String> settings, BiFunction<Integer, String, List<String>> arguments,
            PrintWriter err, Duration deadline) {
        this.plan = plan;
        this.settings = settings;
        this.arguments = arguments;
        this.err = err;
        this.deadline = RunDeadline.after(deadline);
        plan.groups().forEach(group -> group.cells().forEach(cell -> results.add(new CellResult(group, cell))));
    }

    /** Returns the results by the cells' numbers. */
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
        List<RankRun.Failure> failures =
                RankRun.run(ranks,
                        (rendezvous,
                                events) -> processes
                                        ? new ProcessRanks(ranks,
                                                rank -> MatrixMain
                                                        .command(arguments.apply(rank, ranks + ":" + rendezvous)),
                                                _ -> Map.of(), events, err)
                                        : new ThreadRanks(ranks,
                                                rank -> new MatrixWorker(groups, rank, rendezvous, settings,
                                                        plan.seed()),
                                                events),
                        deadline, MatrixWorker.CellReport.class, this);
        String why = failures.isEmpty() ? "not every rank reported it" : failures.getFirst().message();
        groups.stream()
                .flatMap(group -> group.cells().stream())
                .map(cell -> results.get(cell.number()))
                .filter(result -> !result.isComplete())
                .forEach(result -> result.fail(why));
        List<CellResult> done = results.stream().filter(CellResult::isComplete).toList();
        long failed = done.stream().filter(result -> !result.failure().isEmpty()).count();
        err.printf(Locale.ROOT, "# %d ranks, %s: %d of %d cells, %d ran, %d wrong, %s%.0f s%n", ranks,
                processes ? "processes" : "threads", done.size(), results.size(),
                done.stream().filter(CellResult::hasRun).count(), done.stream().mapToLong(CellResult::wrong).sum(),
                failed == 0 ? "" : failed + " failed, ", (System.nanoTime() - start) / 1e9);
    }

    @Override
    public void heard(MatrixWorker.CellReport event) {
        results.get(event.cell()).add(event);
    }

    @Override
    public String overdue(RunDeadline passed) {
        return "not finished in time (--deadline)";
    }
}
