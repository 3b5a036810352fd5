package org.millrace.cli.perf;

import java.io.PrintWriter;
import java.util.Locale;
import org.millrace.cli.console.StatusLine;
import org.millrace.cli.launch.RankRun;
import org.millrace.cli.launch.RunDeadline;

/** The table, and, on a terminal, a line below it that says what is going on while the next line takes long. */
final class PerfDisplay implements RankRun.Listener<PerfEvent> {

    private final PerfPlan plan;
    private final PerfResults results;
    private final PerfTable table;
    private final String how;
    private final StatusLine status;
    private final long start = System.nanoTime();

    PerfDisplay(PrintWriter out, PerfPlan plan, PerfResults results, PerfTable table, String how, boolean terminal) {
        this.plan = plan;
        this.results = results;
        this.table = table;
        this.how = how;
        this.status = new StatusLine(out, terminal);
    }

    @Override
    public void heard(PerfEvent event) {
        results.add(event);
        if (event instanceof PerfEvent.Joined && results.allJoined()) {
            erase();
            table.printHeader(how);
        }
        results.takeComplete().forEach(row -> {
            erase();
            table.print(row);
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

    void erase() {
        status.erase();
    }
}
