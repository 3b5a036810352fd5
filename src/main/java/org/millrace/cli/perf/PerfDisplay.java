package org.millrace.cli.perf;

import java.io.PrintWriter;
import java.util.Locale;

/** The table, and, on a terminal, a line below it that says what is going on while the next line takes long. */
final class PerfDisplay implements PerfRun.Display {

    private final PrintWriter out;
    private final PerfPlan plan;
    private final PerfResults results;
    private final PerfTable table;
    private final String how;
    private final boolean terminal;
    private final long start = System.nanoTime();
    private int shown;

    /**
     * A display that has shown nothing.
     *
     * @param how      the options, in one line
     * @param terminal whether {@code out} is one
     */
    PerfDisplay(PrintWriter out, PerfPlan plan, PerfResults results, PerfTable table, String how, boolean terminal) {
        this.out = out;
        this.plan = plan;
        this.results = results;
        this.table = table;
        this.how = how;
        this.terminal = terminal;
    }

    @Override
    public void joined() {
        erase();
        table.printHeader(how);
    }

    @Override
    public void row(PerfResults.Row row) {
        erase();
        table.print(row);
    }

    @Override
    public void waiting() {
        if (!terminal) {
            return;
        }
        int next = results.rows().size();
        String doing = !results.allJoined() ? "the ranks are joining"
                : next < plan.cases().size() ? "line " + (next + 1) + " of " + plan.cases().size() + ": " + plan.cases().get(next)
                : "the ranks are leaving";
        String line = String.format(Locale.ROOT, "%s, %.0f s", doing, (System.nanoTime() - start) / 1e9);
        erase();
        out.print(line);
        out.flush();
        shown = line.length();
    }

    /** Takes the line away. */
    void erase() {
        if (shown > 0) {
            out.print("\r" + " ".repeat(shown) + "\r");
            out.flush();
            shown = 0;
        }
    }
}
