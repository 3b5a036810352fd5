package org.millrace.cli.perf;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import org.millrace.cli.console.Converters;
import org.millrace.cli.console.Json;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code millrace compare A.json B.json}. */
@Command(
        name = "compare",
        description = {"Compare two runs of 'millrace perf --json', size by size.",
                "A ratio below 1 means that the second run was faster. One run of each says little on a machine that"
                        + " others use: repeat them in turns."},
        sortOptions = false)
public final class CompareCommand implements Callable<Integer> {

    @Spec
    private CommandSpec spec;

    @Parameters(index = "0", paramLabel = "A.json", description = "The run that is compared with.")
    private Path before;

    @Parameters(index = "1", paramLabel = "B.json", description = "The other.")
    private Path after;

    @Option(
            names = "--html",
            paramLabel = "FILE",
            converter = Converters.ResultFile.class,
            description = "Draw both there too: a page for browsers.")
    @Nullable
    private Path html;

    @Override
    public Integer call() {
        PerfPage page = new PerfPage();
        List<Map<?, ?>> first = rows(page, before);
        List<Map<?, ?>> second = rows(page, after);
        Map<String, Map<?, ?>> others = new HashMap<>();
        second.forEach(row -> others.put(key(row), row));
        PrintWriter out = spec.commandLine().getOut();
        out.println("# A: " + before);
        out.println("# B: " + after);
        out.printf("%14s %10s %8s %36s   %s%n", "size", "type", "redop", "out of place: A us, B us, B/A",
                "in place: A us, B us, B/A");
        int compared = 0;
        for (Map<?, ?> row : first) {
            Map<?, ?> other = others.get(key(row));
            if (other != null) {
                compared++;
                out.printf("%14s %10s %8s %36s   %s%n", row.get("size"), row.get("type"), row.get("redop"),
                        ratio(row, other, "out_of_place"), ratio(row, other, "in_place"));
            }
        }
        out.flush();
        if (compared == 0) {
            throw new ParameterException(spec.commandLine(),
                    before + " and " + after + " have no size, type and operation in common");
        }
        if (html != null) {
            page.write(html);
        }
        return ExitCode.OK;
    }

    private List<Map<?, ?>> rows(PerfPage page, Path file) {
        try {
            String text = Files.readString(file);
            page.add(file.getFileName().toString().replaceFirst("\\.json$", ""), text);
            return ((List<?>) ((Map<?, ?>) Json.read(text)).get("results")).stream()
                    .<Map<?, ?>>map(row -> (Map<?, ?>) row)
                    .toList();
        } catch (IOException | IllegalArgumentException | ClassCastException failure) {
            throw new ParameterException(spec.commandLine(),
                    file + " cannot be compared: " + (failure instanceof IOException ? failure : failure.getMessage()),
                    failure);
        }
    }

    private static String key(Map<?, ?> row) {
        return row.get("size") + " " + row.get("type") + " " + row.get("redop");
    }

    private static String ratio(Map<?, ?> row, Map<?, ?> other, String place) {
        if (!(row.get(place) instanceof Map<?, ?> a) || !(other.get(place) instanceof Map<?, ?> b)
                || !(a.get("time_ns") instanceof Number from) || !(b.get("time_ns") instanceof Number to)) {
            return "-";
        }
        return String.format(Locale.ROOT, "%.2f %.2f %.2f", from.doubleValue() / 1e3, to.doubleValue() / 1e3,
                to.doubleValue() / from.doubleValue());
    }
}
