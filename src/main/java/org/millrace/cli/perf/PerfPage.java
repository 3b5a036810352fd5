package org.millrace.cli.perf;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.cli.base.Json;

/**
 * An HTML page of measurements. It shows time and bandwidth by size, with a line for each run, and all values in a
 * sortable table. The page contains all its resources, including uPlot's script, and loads nothing from the network.
 */
final class PerfPage {

    private static final String UPLOT = "/META-INF/resources/webjars/uplot/1.6.30/dist/";

    private final List<Object> runs = new ArrayList<>();
    private final List<String> collectives = new ArrayList<>();

    /** Adds a document that {@link PerfJson} wrote. Throws an exception for any other text. */
    void add(String name, String document) {
        if (!(Json.read(document) instanceof Map<?, ?> run) || !(run.get("results") instanceof List<?> rows)
                || !(run.get("collective") instanceof String collective)
                || !(run.get("environment") instanceof Map<?, ?> environment)) {
            throw new IllegalArgumentException("no results of 'millrace perf --json'");
        }
        // The chart has one line for each pair of type and operation, because --type all and --op all measure several
        // pairs.
        Map<String, List<Object>> lines = new LinkedHashMap<>();
        for (Object each : rows) {
            Map<?, ?> row = (Map<?, ?>) each;
            lines.computeIfAbsent(row.get("type") + " " + row.get("redop"), key -> new ArrayList<>()).add(row);
        }
        if (lines.isEmpty()) {
            throw new IllegalArgumentException("the run has no results: " + run.get("failures"));
        }
        collectives.add(collective);
        lines.forEach((kind, sizes) -> {
            Map<String, Object> line = Json.object("name", lines.size() > 1 ? name + ", " + kind : name, "about",
                    collective + ", " + kind + ", " + run.get("ranks") + " ranks, " + processes(run.get("processes"))
                            + " on " + environment.get("host") + " (" + environment.get("processor") + ", "
                            + environment.get("cores") + " cores, Java " + environment.get("java") + "), "
                            + environment.get("time") + ", Millrace " + environment.get("millrace"),
                    "rows", sizes);
            runs.add(line);
        });
    }

    static String processes(@Nullable Object processes) {
        return Boolean.TRUE.equals(processes) ? "processes" : "threads";
    }

    String html() {
        Map<String, Object> data = Json.object("title",
                String.join(", ", collectives.stream().distinct().toList()) + ": time and bandwidth by size", "about",
                "Times are those of one operation, averaged over the iterations, of the slowest rank.", "runs", runs);
        // Without "<", no text in the data can end the script element that contains the data.
        String json = Json.write(data).replace("<", "\\u003c");
        return resource("chart.html").replace("/*STYLE*/", resource(UPLOT + "uPlot.min.css"))
                .replace("/*UPLOT*/", resource(UPLOT + "uPlot.iife.min.js"))
                .replace("/*DATA*/", json);
    }

    void write(Path file) {
        try {
            Files.writeString(file, html());
        } catch (IOException failure) {
            throw new MillraceException("--html " + file + " cannot be written: " + failure, failure);
        }
    }

    private static String resource(String name) {
        try (InputStream in = Objects.requireNonNull(PerfPage.class.getResourceAsStream(name), name)) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException failure) {
            throw new MillraceException("this build lacks " + name + ": " + failure, failure);
        }
    }
}
