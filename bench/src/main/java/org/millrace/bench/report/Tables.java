package org.millrace.bench.report;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.time.temporal.ChronoUnit;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.millrace.bench.comparator.CompiledLibrary;

/**
 * JMH's results as tables of Markdown, Java beside C. In a page, the text between {@code <!-- table SUITE:VARIANT -->}
 * and {@code <!-- end -->} is replaced by that table. The text between {@code <!-- machine SUITE -->} and its end is
 * replaced by the machine.
 */
public final class Tables {

    private static final Pattern PLACE =
            Pattern.compile("<!-- (table|machine) (\\S+) -->\\n.*?<!-- end -->", Pattern.DOTALL);

    /** Results of both languages by table, group and title. */
    private final Map<String, Map<String, Map<String, Sides>>> tables = new LinkedHashMap<>();
    private final String machine;

    /** A row's results; a side that was not measured is null. */
    private record Sides(Row row, JmhResult java, JmhResult c) {
        Sides with(Row other, JmhResult result) {
            return other.ofC() ? new Sides(row, java, c == null ? result : c.and(result))
                    : new Sides(row, java == null ? result : java.and(result), c);
        }
    }

    /**
     * Creates tables.
     *
     * @param results results of one run or more
     * @param machine text about the machine, see {@link #thisMachine}
     */
    public Tables(List<JmhResult> results, String machine) {
        this.machine = machine;
        for (JmhResult result : results) {
            Row row = Row.of(result);
            if (row != null) {
                tables.computeIfAbsent(row.table(), _ -> new LinkedHashMap<>())
                        .computeIfAbsent(row.group(), _ -> new LinkedHashMap<>())
                        .merge(row.title(), new Sides(row, null, null).with(row, result),
                                (sides, _) -> sides.with(row, result));
            }
        }
    }

    /** {@return all tables} */
    public String all() {
        StringBuilder text = new StringBuilder(machine).append('\n');
        tables.keySet().forEach(name -> text.append("\n### ").append(name).append('\n').append(table(name)));
        return text.toString();
    }

    /**
     * Returns a page with renewed tables.
     *
     * @param page the page. A table that was not measured stays unchanged
     * @return the page
     */
    public String renew(String page) {
        return PLACE.matcher(page).replaceAll(place -> {
            String name = place.group(2);
            boolean isTable = place.group(1).equals("table");
            boolean measured = isTable ? tables.containsKey(name)
                    : tables.keySet().stream().anyMatch(table -> table.startsWith(name + ":"));
            return Matcher.quoteReplacement(measured ? "<!-- " + place.group(1) + " " + name + " -->\n"
                    + (isTable ? table(name) : machine + "\n") + "<!-- end -->" : place.group());
        });
    }

    /**
     * Describes this machine, which measured just before.
     *
     * @param results results of the run
     * @return a sentence
     * @throws IOException if the kernel does not describe the processor
     */
    public static String thisMachine(List<JmhResult> results) throws IOException {
        String processor = Files.readString(Path.of("/proc/cpuinfo"))
                .lines()
                .filter(line -> line.matches("(model name|cpu family|model)\\s*:.*"))
                .limit(3)
                .map(line -> line.replaceAll("model name\\s*:|\\s*:", "").strip())
                .sorted()
                .collect(Collectors.joining(", "));
        JmhResult first = results.getFirst();
        return "Measured until %s on %s, %d usable; %s %s; %s %s; load at the end %s.".formatted(
                ZonedDateTime.now().truncatedTo(ChronoUnit.MINUTES).format(DateTimeFormatter.ISO_OFFSET_DATE_TIME),
                processor, Runtime.getRuntime().availableProcessors(), first.vmName(), first.vmVersion(),
                CompiledLibrary.version(), String.join(" ", CompiledLibrary.FLAGS),
                Files.readString(Path.of("/proc/loadavg")).strip());
    }

    private String table(String name) {
        StringBuilder lines = new StringBuilder();
        StringBuilder latencies = new StringBuilder();
        tables.get(name).forEach((group, rows) -> {
            String heading = group;
            for (Sides sides : rows.values()) {
                if (group.isEmpty()) {
                    latency(latencies, sides.row.title(), "Java", sides.java);
                    latency(latencies, sides.row.title(), "C", sides.c);
                } else {
                    lines.append("| %s | %s | %s | %s | %s |%n".formatted(heading, sides.row.title(), nanos(sides.java),
                            nanos(sides.c), ratio(sides)));
                    heading = "";
                }
            }
        });
        return (lines.isEmpty() ? ""
                : "\n| | | Java, ns | C, ns | Java / C |\n| --- | --- | --- | --- | --- |\n" + lines)
                + (latencies.isEmpty() ? ""
                        : "\n| latency, ns | | 50 % | 99 % | 99.9 % | CPU burnt |\n"
                                + "| --- | --- | --- | --- | --- | --- |\n" + latencies)
                + "\n";
    }

    private static void latency(StringBuilder table, String title, String side, JmhResult result) {
        if (result == null) {
            return;
        }
        Map<String, JmhResult.Metric> metrics = result.secondaryMetrics();
        double cpu = metrics.get("cpu").median();
        table.append(String.format(Locale.ROOT, "| %s | %s | %,.0f | %,.0f | %,.0f | %s |%n", title, side,
                metrics.get("p50").median(), metrics.get("p99").median(), metrics.get("p999").median(),
                cpu == 0 ? "" : String.format(Locale.ROOT, "%.0f %%", cpu)));
    }

    private static String nanos(JmhResult result) {
        return result == null ? "" : nanos(result.primaryMetric().median());
    }

    /** Returns a time with three significant digits. */
    static String nanos(double nanos) {
        return String.format(Locale.ROOT, nanos < 10 ? "%.2f" : nanos < 100 ? "%.1f" : "%,.0f", nanos);
    }

    private static String ratio(Sides sides) {
        if (sides.java == null || sides.c == null) {
            return "";
        }
        Ratio ratio = Ratio.of(sides.java.primaryMetric().rawData(), sides.c.primaryMetric().rawData());
        return String.format(Locale.ROOT, sides.row.sameWay() ? "%.2f (%.2f to %.2f)" : "%.2f (C does less)",
                ratio.value(), ratio.low(), ratio.high());
    }
}
