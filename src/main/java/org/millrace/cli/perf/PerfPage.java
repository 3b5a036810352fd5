package org.millrace.cli.perf;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.millrace.cli.base.Json;
import org.millrace.cli.base.Resource;

/**
 * An HTML page of measurements. It shows time and bandwidth by size, with a line for each run, and all values in a
 * sortable table. If runs A are compared with runs B, the page also shows the differences. The lines of the runs A then
 * have one color, and the lines of the runs B another color. The page contains all its resources, including uPlot's
 * script, and loads nothing from the network.
 */
final class PerfPage {

    private static final String UPLOT = "/META-INF/resources/webjars/uplot/1.6.30/dist/";

    private PerfPage() {}

    /**
     * @param differences differences of A and B by type and reduction, as {@link CompareCommand} makes them; empty if
     *                    the runs are not compared
     */
    static void write(Path file, List<PerfRun> runs, Map<String, ?> differences) {
        List<Object> lines = new ArrayList<>();
        for (int i = 0; i < runs.size(); i++) {
            PerfRun run = runs.get(i);
            // The chart has one line for each pair of type and operation, because --type all and --op all measure
            // several pairs.
            Map<String, List<Object>> kinds = new LinkedHashMap<>();
            run.rows()
                    .values()
                    .forEach(row -> kinds.computeIfAbsent(PerfRun.kind(row), _ -> new ArrayList<>()).add(row));
            String name = differences.isEmpty() ? run.name() : (i % 2 == 0 ? "A: " : "B: ") + run.name();
            int color = differences.isEmpty() ? lines.size() : i % 2;
            kinds.forEach((kind,
                    rows) -> lines.add(Json.object("name", kinds.size() > 1 ? name + ", " + kind : name, "kind", kind,
                            "about", kind + ", " + run.about() + ", on " + run.environment(), "color", color, "rows",
                            rows)));
        }
        Map<String, Object> data = Json.object("title",
                runs.stream()
                        .map(run -> (String) run.document().get("collective"))
                        .distinct()
                        .collect(Collectors.joining(", ")) + (differences.isEmpty() ? ": time" : ": difference, time")
                        + " and bandwidth by size",
                "about", "Times are those of one operation, averaged over the iterations, of the slowest rank.", "runs",
                lines, "pairs", runs.size() / 2, "differences", differences);
        // The page contains the data in a script element. A "<" in a text of the data could end this element.
        String json = Json.write(data).replace("<", "\\u003c");
        Json.save("--html", file,
                Resource.text(PerfPage.class, "chart.html")
                        .replace("/*STYLE*/", Resource.text(PerfPage.class, UPLOT + "uPlot.min.css"))
                        .replace("/*UPLOT*/", Resource.text(PerfPage.class, UPLOT + "uPlot.iife.min.js"))
                        .replace("/*DATA*/", json));
    }
}
