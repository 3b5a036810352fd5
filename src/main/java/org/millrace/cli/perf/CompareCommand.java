package org.millrace.cli.perf;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
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

    /**
     * Times of the runs A and B for one size, in microseconds. The difference between the two times, and the noise of
     * the difference, are in percent of A's time. Unknown values are NaN.
     */
    private record Difference(double a, double b, double difference, double noise) {

        /** Returns the four values as columns of the table. */
        String text() {
            if (Double.isNaN(difference)) {
                return String.format(TIMES, "-", "-", "-", "-");
            }
            return String.format(Locale.ROOT, TIMES, number("%.2f", a), number("%.2f", b),
                    number("%+.1f%%", difference), Double.isNaN(noise) ? "-" : number("%.1f%%", noise));
        }

        private static String number(String format, double value) {
            return String.format(Locale.ROOT, format, value);
        }

        Map<String, Object> json() {
            return Json.object("a", a, "b", b, "difference", difference, "noise", noise);
        }
    }

    private static final String TIMES = " %12s %12s %8s %7s";

    @Parameters(
            paramLabel = "A.json B.json",
            arity = "1..*",
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
        require(files.size() % 2 == 0,
                "as many files of A as of B are needed, in turns; number of files: " + files.size());
        List<PerfRun> runs = files.stream().map(this::read).toList();
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
            out.println("# " + (i % 2 == 0 ? "A: " : "B: ") + files.get(i) + ": " + runs.get(i).about());
        }
        String columns = String.format(TIMES, "A us", "B us", "B-A", "noise");
        out.printf("%14s %10s %8s%-42s  in place%n", "", "", "", "  out of place");
        out.printf("%14s %10s %8s%s %s%n", "size", "type", "redop", columns, columns);
        Map<String, List<Object>> differences = new LinkedHashMap<>();
        for (String key : common) {
            Map<?, ?> row = runs.getFirst().rows().get(key);
            Difference outOfPlace = difference(runs, key, "out_of_place");
            Difference inPlace = difference(runs, key, "in_place");
            out.printf("%14s %10s %8s%s %s%n", row.get("size"), row.get("type"), row.get("redop"), outOfPlace.text(),
                    inPlace.text());
            differences.computeIfAbsent(PerfRun.kind(row), _ -> new ArrayList<>())
                    .add(Json.object("size", row.get("size"), "out_of_place", outOfPlace.json(), "in_place",
                            inPlace.json()));
        }
        if (runs.size() == 2) {
            out.println("# one run of each: how far runs differ by chance is not known; name more, in turns: A B A B");
        }
        out.flush();
        if (html != null) {
            PerfPage.write(html, runs, differences);
        }
        return ExitCode.OK;
    }

    private PerfRun read(Path file) {
        try {
            return PerfRun.of(file.getFileName().toString().replaceFirst("\\.json$", ""), Files.readString(file));
        } catch (NoSuchFileException missing) {
            throw new ParameterException(spec.commandLine(), "there is no file " + file, missing);
        } catch (IOException | IllegalArgumentException failure) {
            throw new ParameterException(spec.commandLine(), file + " cannot be compared: " + failure.getMessage(),
                    failure);
        }
    }

    /**
     * Returns three medians and the noise of the differences. The first median is of the runs A, the second of the runs
     * B, and the third of the differences.
     */
    private static Difference difference(List<PerfRun> runs, String key, String place) {
        double[] differences = each(runs, (first, second) -> 100 * (second / first - 1), key, place);
        double noise = (differences[differences.length - 1] - differences[0]) / 2;
        if (Double.isNaN(noise)) { // A run lacks the value. Sorting puts NaN last.
            return new Difference(Double.NaN, Double.NaN, Double.NaN, Double.NaN);
        }
        return new Difference(median(each(runs, (first, _) -> first / 1e3, key, place)),
                median(each(runs, (_, second) -> second / 1e3, key, place)), median(differences),
                runs.size() == 2 ? Double.NaN : noise);
    }

    /** Computes a value from each run of A and the run of B that follows it. Returns the values in ascending order. */
    private static double[] each(List<PerfRun> runs, DoubleBinaryOperator value, String key, String place) {
        return IntStream.range(0, runs.size() / 2)
                .mapToDouble(pair -> value.applyAsDouble(runs.get(2 * pair).nanos(key, place),
                        runs.get(2 * pair + 1).nanos(key, place)))
                .sorted()
                .toArray();
    }

    private static double median(double[] sorted) {
        return (sorted[(sorted.length - 1) / 2] + sorted[sorted.length / 2]) / 2;
    }
}
