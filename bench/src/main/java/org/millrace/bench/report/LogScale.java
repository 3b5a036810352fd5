package org.millrace.bench.report;

import java.util.ArrayList;
import java.util.List;

/** A logarithmic axis from 0 to 100 percent. */
final class LogScale {

    private static final double MARGIN = 0.06;

    private final double low;
    private final double high;

    /** Creates an axis that contains all values with a margin, and spans at least a decade. */
    LogScale(double smallest, double largest) {
        double from = Math.log10(Math.max(smallest, 1e-3));
        double to = Math.log10(Math.max(largest, 1e-3));
        double missing = Math.max(0, 1 - (to - from)) / 2;
        double margin = MARGIN * Math.max(to - from, 1);
        low = from - missing - margin;
        high = to + missing + margin;
    }

    /** A value's place in percent. */
    double place(double value) {
        return (Math.log10(Math.max(value, 1e-3)) - low) / (high - low) * 100;
    }

    /** Returns round values on the axis: decades, and 2 and 5 between them if there is room. */
    List<Double> ticks() {
        List<Double> ticks = new ArrayList<>();
        double[] steps = high - low > 2.5 ? new double[] {1} : new double[] {1, 2, 5};
        for (int decade = (int) Math.floor(low); decade <= high; decade++) {
            for (double step : steps) {
                double tick = step * Math.pow(10, decade);
                if (place(tick) >= 2 && place(tick) <= 97) {
                    ticks.add(tick);
                }
            }
        }
        return ticks;
    }

    /** A time as a tick's name. */
    static String name(double nanos) {
        if (nanos >= 1e9) {
            return number(nanos / 1e9) + " s";
        }
        if (nanos >= 1e6) {
            return number(nanos / 1e6) + " ms";
        }
        return nanos >= 1e3 ? number(nanos / 1e3) + " µs" : number(nanos) + " ns";
    }

    private static String number(double value) {
        return Html.format("%.10f", value).replaceAll("0+$", "").replaceAll("\\.$", "");
    }
}
