package org.millrace.cli.perf;

import java.io.PrintWriter;
import java.util.Locale;
import java.util.Optional;
import org.millrace.Route;
import org.millrace.cli.base.StatusLine;
import org.millrace.cli.run.RankRun;
import org.millrace.cli.run.RunDeadline;

/**
 * Prints a table with the columns of nccl-tests, so that programs that parse nccl-tests' table can read it. Lines that
 * are not results begin with {@code #}. On a terminal, a line below the table shows the current activity while the next
 * line of the table takes long.
 */
final class PerfTable implements RankRun.Listener<PerfEvent> {

    private final PrintWriter out;
    private final PerfPlan plan;
    private final PerfResults results;
    private final String how;
    private final StatusLine status;
    private final long start = System.nanoTime();
    private boolean begun;
    private Optional<Route> route = Optional.empty();

    /**
     * @param how      description of the options, in one line
     * @param terminal whether {@code out} is a terminal
     */
    PerfTable(PrintWriter out, PerfPlan plan, PerfResults results, String how, boolean terminal) {
        this.out = out;
        this.plan = plan;
        this.results = results;
        this.how = how;
        this.status = new StatusLine(out, terminal);
    }

    @Override
    public void heard(PerfEvent event) {
        results.add(event);
        if (event instanceof PerfEvent.Joined && results.allJoined()) {
            status.erase();
            printHeader();
        }
        results.takeComplete().forEach(row -> {
            status.erase();
            print(row);
        });
    }

    @Override
    public String overdue(RunDeadline deadline) {
        return RankRun.Listener.super.overdue(deadline) + ": " + results.whereabouts();
    }

    @Override
    public void waiting() {
        int next = results.rows().size();
        String doing = !results.allJoined() ? "the ranks are joining"
                : next < plan.cases().size()
                        ? "line " + (next + 1) + " of " + plan.cases().size() + ": " + plan.cases().get(next)
                        : "the ranks are leaving";
        status.show(String.format(Locale.ROOT, "%s, %.0f s", doing, (System.nanoTime() - start) / 1e9));
    }

    private void printHeader() {
        out.println("# " + plan.collective().label() + ": " + how);
        out.println("# time is that of one operation, averaged over the iterations, of the slowest rank");
        out.println("#");
        out.println("# Using devices");
        for (int rank = 0; rank < plan.ranks(); rank++) {
            PerfEvent.Joined at = results.joined(rank);
            out.printf(Locale.ROOT, "#  Rank %2d Pid %6d on %s %s%n", rank, at.pid(), at.host(), at.device());
        }
        out.println("#");
        out.flush();
    }

    private void printColumns() {
        out.printf("# %10s  %12s  %8s  %6s  %6s  %35s  %35s%n", "", "", "", "", "", "out-of-place           ",
                "in-place             ");
        out.printf("# %10s  %12s  %8s  %6s  %6s  %8s  %7s  %7s  %6s  %8s  %7s  %7s  %6s%n", "size", "count", "type",
                "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong");
        out.printf("# %10s  %12s  %8s  %6s  %6s  %8s  %7s  %7s  %6s  %8s  %7s  %7s  %6s%n", "(B)", "(elements)", "", "",
                "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "");
    }

    /**
     * Prints a line of the table. If the line's route differs from the previous line's route, first prints the route.
     */
    void print(PerfResults.Row row) {
        if (!row.route().equals(route)) {
            route = row.route();
            out.println("# route: " + route.map(PerfTable::text).orElse("unknown"));
        }
        if (!begun) {
            begun = true;
            printColumns();
        }
        PerfPlan.Case line = row.line();
        out.printf("%12d  %12d  %8s  %6s  %6d", line.bytes(), line.count() / plan.parts(), line.type().label(),
                plan.collective().reduces() ? line.reduction() : "none",
                plan.collective().hasRoot() ? CollectiveCall.ROOT : -1);
        print(line, row.outOfPlace());
        print(line, row.inPlace());
        out.println();
        results.profile(row).forEach(text -> out.println("#   " + text));
        out.flush();
    }

    private static String text(Route route) {
        String how = route.algorithm() + ", " + route.protocol() + ", " + route.mode();
        return route.transports().isEmpty() ? how : how + ", over " + String.join(", ", route.transports());
    }

    private void print(PerfPlan.Case line, PerfEvent.CaseResult sample) {
        if (!sample.isMeasured()) {
            out.printf("  %8s  %7s  %7s  %6s", "N/A", "N/A", "N/A", "N/A");
            return;
        }
        out.printf(Locale.ROOT, sample.nanos() < 1e7 ? "  %8.2f" : "  %8.0f", sample.nanos() / 1e3);
        out.printf(Locale.ROOT, "  %7.2f  %7.2f  %6s", PerfResults.algorithmBandwidth(line, sample),
                results.busBandwidth(line, sample), sample.isChecked() ? sample.wrong() : "N/A");
    }

    void eraseStatus() {
        status.erase();
    }

    void printFooter() {
        out.println("# wrong values: " + (plan.check() ? results.wrong() : "not checked (-c 0)"));
        out.printf(Locale.ROOT, "# Avg bus bandwidth : %.4f%n", results.averageBusBandwidth());
        out.println("#");
        out.flush();
    }
}
