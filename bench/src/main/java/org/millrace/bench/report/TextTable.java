package org.millrace.bench.report;

import java.io.PrintStream;
import java.util.List;
import java.util.Locale;
import org.millrace.bench.measure.Ratio;
import org.millrace.bench.measure.Statistics;

/** Lines for a terminal. */
public final class TextTable {

    private TextTable() {}

    /**
     * Prints lines, with a heading at the beginning of each group.
     *
     * @param lines lines to print
     * @param out   destination
     */
    public static void print(List<Line> lines, PrintStream out) {
        String group = "";
        for (Line line : lines) {
            if (!line.group().equals(group)) {
                group = line.group();
                out.printf("  %-52s %10s %10s   %s%n", group, "Java ns", "C ns", "ratio");
            }
            out.printf("    %-50s %10s %10s   %s%n", line.title(), nanos(Statistics.median(line.java())),
                    line.hasC() ? nanos(Statistics.median(line.c())) : "-", ratio(line));
        }
    }

    /**
     * Prints distributions.
     *
     * @param latencies distributions to print
     * @param out       destination
     */
    public static void printLatencies(List<Latency> latencies, PrintStream out) {
        if (!latencies.isEmpty()) {
            out.printf("  %-66s %4s %10s %10s %10s%n", "Latency, ns", "", "50 %", "99 %", "99.9 %");
        }
        for (Latency latency : latencies) {
            out.printf(Locale.ROOT, "    %-64s %4s %,10d %,10d %,10d%s%n", latency.title(), latency.side(),
                    latency.at(50), latency.at(99), latency.at(99.9), Double.isNaN(latency.cpuShare()) ? ""
                            : String.format(Locale.ROOT, "   CPU %3.0f %%", latency.cpuShare() * 100));
        }
    }

    /**
     * Returns a time with its significant digits.
     *
     * @param nanos the time
     * @return about three digits
     */
    public static String nanos(double nanos) {
        return String.format(Locale.ROOT, nanos < 10 ? "%.2f" : nanos < 100 ? "%.1f" : "%,.0f", nanos);
    }

    private static String ratio(Line line) {
        Ratio ratio = line.ratio();
        if (ratio == null) {
            return "";
        }
        String goal = !line.sameWay() ? "  (C: the bare work)" : line.misses() ? "  above the goal" : "";
        String placements = line.modes() == null ? "" : "  two placements";
        return String.format(Locale.ROOT, "%.2f  [%.2f, %.2f]%s%s", ratio.value(), ratio.low(), ratio.high(), goal,
                placements);
    }
}
