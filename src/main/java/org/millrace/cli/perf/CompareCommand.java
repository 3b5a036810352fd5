package org.millrace.cli.perf;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.DoubleBinaryOperator;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.millrace.cli.base.Converters;
import org.millrace.cli.base.Json;
import org.millrace.cli.base.Subcommand;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;

/** {@code millrace compare A.json B.json}. */
@Command(
        name = "compare",
        description = {
                "Compare two runs of 'millrace perf --json', size by size: B's time less A's, in percent of A's.",
                "One run of each says little on a machine that others use. Run both several times in turns, and name all"
                        + " files in that order, A B A B: shown are medians, and as noise half of what lies between the"
                        + " smallest and the largest difference. A difference that is not larger says nothing."},
        sortOptions = false)
public final class CompareCommand extends Subcommand {

    /** Content of one file: its results by size, type and operation. */
    private record Run(Path file, Map<?, ?> document, Map<String, Map<?, ?>> rows) {

        /** Returns a text with the circumstances of the run and the routes of its data. */
        String about() {
            Object net = document.get("settings") instanceof Map<?, ?> settings
                    && settings.get("MILLRACE_NET") instanceof Map<?, ?> entry ? entry.get("text") : "unknown";
            String routes = rows.values()
                    .stream()
                    .map(row -> row.get("route") instanceof Map<?, ?> route ? route(route) : "unknown")
                    .distinct()
                    .collect(Collectors.joining("; "));
            return document.get("collective") + ", " + document.get("ranks") + " ranks, "
                    + PerfPage.processes(document.get("processes")) + ", network " + net + ", route " + routes;
        }

        private static String route(Map<?, ?> route) {
            String transports = route.get("transports") instanceof List<?> names
                    ? names.stream().map(Object::toString).collect(Collectors.joining(" and "))
                    : "";
            return route.get("algorithm") + " " + route.get("protocol") + " " + route.get("mode")
                    + (transports.isEmpty() ? "" : " over " + transports);
        }

        double microseconds(String key, String place) {
            return rows.get(key).get(place) instanceof Map<?, ?> sample && sample.get("time_ns") instanceof Number time
                    ? time.doubleValue() / 1e3
                    : Double.NaN;
        }
    }

    private static final String TIMES = " %12s %12s %8s %7s";

    @Parameters(
            paramLabel = "A.json B.json",
            arity = "2..*",
            description = "The run that is compared with, and the other; more of both in turns.")
    private List<Path> files;

    @Option(
            names = "--html",
            paramLabel = "FILE",
            converter = Converters.ResultFile.class,
            description = "Draw them there too: a page for browsers.")
    @Nullable
    private Path html;

    @Override
    public Integer call() {
        require(files.size() % 2 == 0, "as many files of A as of B are needed, in turns, and here are " + files.size());
        PerfPage page = new PerfPage();
        List<Run> runs = files.stream().map(file -> read(page, file)).toList();
        List<String> common = runs.getFirst()
                .rows()
                .keySet()
                .stream()
                .filter(key -> runs.stream().allMatch(run -> run.rows().containsKey(key)))
                .toList();
        require(!common.isEmpty(), files.stream().map(Path::toString).collect(Collectors.joining(" and "))
                + " have no size, type and operation in common");
        PrintWriter out = spec.commandLine().getOut();
        for (int i = 0; i < runs.size(); i++) {
            out.println("# " + (i % 2 == 0 ? "A: " : "B: ") + runs.get(i).file() + ": " + runs.get(i).about());
        }
        String columns = String.format(TIMES, "A us", "B us", "B-A", "noise");
        out.printf("%14s %10s %8s%-42s  in place%n", "", "", "", "  out of place");
        out.printf("%14s %10s %8s%s %s%n", "size", "type", "redop", columns, columns);
        for (String key : common) {
            Map<?, ?> row = runs.getFirst().rows().get(key);
            out.printf("%14s %10s %8s%s %s%n", row.get("size"), row.get("type"), row.get("redop"),
                    times(runs, key, "out_of_place"), times(runs, key, "in_place"));
        }
        if (runs.size() == 2) {
            out.println("# one run of each: how far runs differ by chance is not known; name more, in turns: A B A B");
        }
        out.flush();
        if (html != null) {
            page.write(html);
        }
        return ExitCode.OK;
    }

    private Run read(PerfPage page, Path file) {
        try {
            String text = Files.readString(file);
            page.add(file.getFileName().toString().replaceFirst("\\.json$", ""), text);
            Map<?, ?> document = (Map<?, ?>) Json.read(text);
            Map<String, Map<?, ?>> rows = new LinkedHashMap<>();
            for (Object each : (List<?>) document.get("results")) {
                Map<?, ?> row = (Map<?, ?>) each;
                rows.put(row.get("size") + " " + row.get("type") + " " + row.get("redop"), row);
            }
            return new Run(file, document, rows);
        } catch (NoSuchFileException missing) {
            throw new ParameterException(spec.commandLine(), "there is no file " + file, missing);
        } catch (IOException | IllegalArgumentException | ClassCastException failure) {
            throw new ParameterException(spec.commandLine(), file + " cannot be compared: " + failure.getMessage(),
                    failure);
        }
    }

    /**
     * Returns the text of four columns: the median of the runs A, the median of the runs B, the difference, and the
     * difference's noise.
     */
    private static String times(List<Run> runs, String key, String place) {
        double[] a = each(runs, (first, _) -> first, key, place);
        double[] difference = each(runs, (first, second) -> 100 * (second / first - 1), key, place);
        if (Double.isNaN(difference[difference.length - 1])) { // NaN is sorted last
            return String.format(TIMES, "-", "-", "-", "-");
        }
        double noise = (difference[difference.length - 1] - difference[0]) / 2;
        return String.format(Locale.ROOT, TIMES, number("%.2f", median(a)),
                number("%.2f", median(each(runs, (_, second) -> second, key, place))),
                number("%+.1f%%", median(difference)), runs.size() == 2 ? "-" : number("%.1f%%", noise));
    }

    /** Computes a value from each run of A and the run of B that follows it. Returns the values in ascending order. */
    private static double[] each(List<Run> runs, DoubleBinaryOperator value, String key, String place) {
        return IntStream.range(0, runs.size() / 2)
                .mapToDouble(pair -> value.applyAsDouble(runs.get(2 * pair).microseconds(key, place),
                        runs.get(2 * pair + 1).microseconds(key, place)))
                .sorted()
                .toArray();
    }

    private static double median(double[] sorted) {
        return (sorted[(sorted.length - 1) / 2] + sorted[sorted.length / 2]) / 2;
    }

    private static String number(String format, double value) {
        return String.format(Locale.ROOT, format, value);
    }
}
