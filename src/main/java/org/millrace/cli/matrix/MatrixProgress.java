package org.millrace.cli.matrix;

import java.io.PrintWriter;
import java.util.Locale;
import org.millrace.cli.console.StatusLine;

/**
 * Says how far a run is, which takes minutes: on a terminal all the time, elsewhere when a number of ranks is through.
 * Used by one thread.
 */
final class MatrixProgress {

    /** No eye follows more. */
    private static final long PERIOD_NANOS = 100_000_000;

    private final PrintWriter err;
    private final StatusLine status;
    private final int cells;
    private final long start = System.nanoTime();
    private CellGroup current;
    private int done;
    private int ran;
    private int failed;
    private long wrong;
    private long nextShown = start;

    /**
     * Nothing has run yet.
     *
     * @param terminal whether {@code err} is one
     * @param cells    how many there are
     */
    MatrixProgress(PrintWriter err, boolean terminal, int cells) {
        this.err = err;
        this.status = new StatusLine(err, terminal);
        this.cells = cells;
    }

    /** Groups of as many ranks as this one are next, as threads or processes as its are. */
    void begin(CellGroup group) {
        current = group;
        show();
    }

    /** A cell is finished. */
    void add(CellResult result) {
        done++;
        ran += result.hasRun() ? 1 : 0;
        failed += result.failure().isEmpty() ? 0 : 1;
        wrong += result.wrong();
        tick();
    }

    /** Some time has passed. */
    void tick() {
        if (System.nanoTime() - nextShown >= 0) {
            show();
        }
    }

    private void show() {
        status.show(text());
        nextShown = System.nanoTime() + PERIOD_NANOS;
    }

    /** All groups of this number of ranks are through. */
    void end() {
        if (status.isVisible()) {
            status.erase();
        } else {
            err.println(text());
        }
    }

    private String text() {
        return String.format(Locale.ROOT, "# %d ranks, %s: %d of %d cells, %d ran, %d wrong, %s%.0f s", current.ranks(),
                current.processes() ? "processes" : "threads", done, cells, ran, wrong,
                failed == 0 ? "" : failed + " failed, ", (System.nanoTime() - start) / 1e9);
    }
}
