package org.millrace.bench.report;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/**
 * Results of {@code bench/jvm.sh} as tables of Markdown. A line of the results has tabs between: library, number of
 * ranks, operation, bytes, microseconds at first, microseconds later. A line with the operation {@code checked} has the
 * numbers of compared bytes and of wrong elements instead.
 */
public final class LibraryTables {

    /** Samples of a library by bytes. */
    private record Samples(Map<Long, List<Double>> fresh, Map<Long, List<Double>> steady) {

        Samples() {
            this(new TreeMap<>(), new TreeMap<>());
        }
    }

    private static final Map<String, String> TITLES = Map.of("trip", "Round trip", "sum", "All-reduce");

    private final Map<String, Map<String, Samples>> tables = new TreeMap<>((a, b) -> b.compareTo(a));
    private long checked;
    private long wrong;

    /**
     * Reads results.
     *
     * @param file file of the results
     * @throws IOException if the file cannot be read or has another form
     */
    public LibraryTables(Path file) throws IOException {
        for (String line : Files.readAllLines(file)) {
            String[] fields = line.split("\t");
            if (fields.length != 6) {
                throw new IOException(file + ": not 'library, ranks, operation, bytes, at first, later': " + line);
            }
            long bytes = Long.parseLong(fields[3]);
            if (fields[2].equals("checked")) {
                checked += bytes;
                wrong += Long.parseLong(fields[4]);
                continue;
            }
            Samples samples = tables.computeIfAbsent(title(fields[2], fields[1]), _ -> new LinkedHashMap<>())
                    .computeIfAbsent(fields[0], _ -> new Samples());
            add(samples.fresh, bytes, fields[4]);
            add(samples.steady, bytes, fields[5]);
        }
    }

    private static String title(String operation, String ranks) {
        return TITLES.getOrDefault(operation, operation) + ", " + ranks + " ranks, µs";
    }

    private static void add(Map<Long, List<Double>> samples, long bytes, String micros) {
        samples.computeIfAbsent(bytes, _ -> new ArrayList<>()).add(Double.valueOf(micros));
    }

    @Override
    public String toString() {
        StringBuilder text = new StringBuilder();
        tables.forEach((title, libraries) -> {
            List<Long> sizes = List.copyOf(libraries.values().iterator().next().fresh.keySet());
            text.append("\n| ").append(title).append(" | |");
            sizes.forEach(bytes -> text.append(' ').append(size(bytes)).append(" |"));
            text.append("\n|").repeat(" --- |", sizes.size() + 2).append('\n');
            libraries.forEach((library, samples) -> {
                row(text, library + " | at first", sizes, samples.fresh);
                row(text, "| later", sizes, samples.steady);
            });
        });
        return text.append(String.format(Locale.ROOT, "%n%,d bytes compared, %d wrong elements%n", checked, wrong))
                .toString();
    }

    private static void row(StringBuilder text, String head, List<Long> sizes, Map<Long, List<Double>> samples) {
        text.append("| ").append(head).append(" |");
        for (Long bytes : sizes) {
            double[] rounds = samples.get(bytes).stream().mapToDouble(Double::doubleValue).toArray();
            text.append(String.format(" %s (%s, %s) |", micros(Statistics.median(rounds)),
                    micros(Statistics.quantile(rounds, 0.25)), micros(Statistics.quantile(rounds, 0.75))));
        }
        text.append('\n');
    }

    private static String micros(double value) {
        return String.format(Locale.ROOT, value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%,.0f", value);
    }

    private static String size(long bytes) {
        return bytes < 1 << 10 ? bytes + " B" : bytes < 1 << 20 ? (bytes >> 10) + " KiB" : (bytes >> 20) + " MiB";
    }
}
