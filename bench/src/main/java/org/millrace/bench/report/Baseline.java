package org.millrace.bench.report;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.millrace.bench.measure.Modes;
import org.millrace.bench.measure.Ratio;
import org.millrace.bench.measure.Statistics;

/**
 * Earlier results of a kind of machine. Each line has the ratio to C with its interval. Without a C side, it has Java's
 * time with its quartiles.
 */
public final class Baseline {

    /** Smallest relative change that counts, however narrow the intervals are. */
    private static final double TOLERANCE = 0.05;
    private static final String FORMAT = "millrace-bench-baseline-1";

    private final Map<String, Figure> figures;

    /** A figure and the bounds of its interval, in the unit of the figure. */
    private record Figure(String what, double value, double low, double high) {
    }

    private Baseline(Map<String, Figure> figures) {
        this.figures = figures;
    }

    /**
     * Returns the baseline for results.
     *
     * @param results measured results
     * @return the baseline
     */
    public static Baseline of(Results results) {
        Map<String, Figure> figures = new LinkedHashMap<>();
        results.lines().forEach(line -> figures.put(line.key(), figure(line)));
        return new Baseline(figures);
    }

    private static Figure figure(Line line) {
        Ratio ratio = line.ratio();
        if (ratio != null) {
            return new Figure("ratio to C", ratio.value(), ratio.low(), ratio.high());
        }
        Modes modes = line.modes();
        double[] java = line.java();
        return new Figure("nanoseconds", Statistics.median(java),
                modes == null ? Statistics.quantile(java, 0.25) : modes.low(),
                modes == null ? Statistics.quantile(java, 0.75) : modes.high());
    }

    /**
     * Reads a baseline.
     *
     * @param file file that {@link #write} wrote
     * @return the baseline
     * @throws IOException if it cannot be read or is no baseline
     */
    public static Baseline read(Path file) throws IOException {
        try {
            Map<?, ?> all = (Map<?, ?>) JsonText.read(Files.readString(file));
            if (!FORMAT.equals(all.get("format"))) {
                throw new IOException(
                        file + " is no baseline: its format is '" + all.get("format") + "', not '" + FORMAT + "'");
            }
            Map<String, Figure> figures = new LinkedHashMap<>();
            ((Map<?, ?>) all.get("lines")).forEach((key, value) -> {
                Map<?, ?> figure = (Map<?, ?>) value;
                figures.put((String) key, new Figure((String) figure.get("what"), (Double) figure.get("value"),
                        (Double) figure.get("low"), (Double) figure.get("high")));
            });
            return new Baseline(figures);
        } catch (IllegalArgumentException | ClassCastException | NullPointerException e) {
            throw new IOException(file + " is no baseline, or damaged: " + e, e);
        }
    }

    /**
     * Writes this baseline.
     *
     * @param environment environment of the measurement
     * @param file        file to write
     * @throws IOException if it cannot be written
     */
    public void write(Map<String, String> environment, Path file) throws IOException {
        Map<String, Object> lines = new LinkedHashMap<>();
        figures.forEach((key, figure) -> {
            Map<String, Object> map = new LinkedHashMap<>();
            map.put("what", figure.what);
            map.put("value", rounded(figure.value));
            map.put("low", rounded(figure.low));
            map.put("high", rounded(figure.high));
            lines.put(key, map);
        });
        Map<String, Object> all = new LinkedHashMap<>();
        all.put("format", FORMAT);
        all.put("environment", environment);
        all.put("lines", lines);
        if (file.getParent() != null) {
            Files.createDirectories(file.getParent());
        }
        Files.writeString(file, JsonText.write(all));
    }

    private static double rounded(double value) {
        return Math.round(value * 1e4) / 1e4;
    }

    /**
     * Returns the lines that differ from this baseline by more than noise: the two intervals do not overlap, and the
     * figure changed by more than five percent. Lines that exist only in one of the two are omitted.
     *
     * @param now current results
     * @return the lines that differ, in the order of the current results
     */
    public List<Movement> movements(Results now) {
        List<Movement> movements = new ArrayList<>();
        of(now).figures.forEach((key, after) -> {
            Figure before = figures.get(key);
            if (before != null && before.what.equals(after.what) && (after.low > before.high || after.high < before.low)
                    && Math.abs(after.value / before.value - 1) > TOLERANCE) {
                movements.add(new Movement(key, after.what, before.value, after.value));
            }
        });
        return movements;
    }
}
