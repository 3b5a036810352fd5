package org.millrace.bench.report;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.millrace.bench.measure.Ratio;
import org.millrace.bench.measure.Statistics;

/**
 * Results as tables of Markdown, and pages with tables to renew. The text between {@code <!-- table SUITE:VARIANT -->}
 * and {@code <!-- end -->} is replaced by that variant's table. The text between {@code <!-- machine SUITE -->} and its
 * end is replaced by the machine that ran the suite.
 */
public final class MarkdownTables {

    private static final Pattern PLACE =
            Pattern.compile("<!-- (?:table|machine) (\\S+) -->\\n.*?<!-- end -->", Pattern.DOTALL);

    private MarkdownTables() {}

    /**
     * Returns all tables.
     *
     * @param results measured results
     * @return Markdown
     */
    public static String all(Results results) {
        StringBuilder text =
                new StringBuilder(results.isSmoke() ? "**A run with --smoke: no figure means anything.**\n\n" : "");
        text.append(machine(results));
        variants(results).forEach(
                variant -> text.append("\n### ").append(variant).append("\n\n").append(table(results, variant)));
        return text.toString();
    }

    /**
     * Returns a page with renewed tables.
     *
     * @param page    the page. The table of a variant that was not measured stays unchanged
     * @param results measured results
     * @return the page
     */
    public static String renew(String page, Results results) {
        List<String> variants = variants(results);
        return PLACE.matcher(page).replaceAll(place -> {
            String name = place.group(1);
            boolean table = place.group().startsWith("<!-- table");
            if (table ? !variants.contains(name)
                    : variants.stream().noneMatch(variant -> variant.startsWith(name + ":"))) {
                return Matcher.quoteReplacement(place.group());
            }
            String begin = (table ? "<!-- table " : "<!-- machine ") + name + " -->\n";
            return Matcher.quoteReplacement(begin + (table ? table(results, name) : machine(results)) + "<!-- end -->");
        });
    }

    private static String machine(Results results) {
        return "Measured %s on %s; %s; %s; load before %s.\n".formatted(value(results, "date"),
                value(results, "processor"), value(results, "JDK"), value(results, "C"), value(results, "load before"));
    }

    private static String value(Results results, String name) {
        return results.environment().getOrDefault(name, "?");
    }

    private static List<String> variants(Results results) {
        List<String> variants = new ArrayList<>();
        results.lines().forEach(line -> variants.add(variant(line)));
        results.latencies().forEach(latency -> variants.add(latency.suite() + ":" + latency.variant()));
        return variants.stream().distinct().toList();
    }

    private static String variant(Line line) {
        return line.suite() + ":" + line.variant();
    }

    private static String table(Results results, String variant) {
        StringBuilder table = new StringBuilder();
        List<Line> lines = results.lines().stream().filter(line -> variant(line).equals(variant)).toList();
        if (!lines.isEmpty()) {
            table.append("\n| | | Java, ns | C, ns | Java / C |\n| --- | --- | --- | --- | --- |\n");
        }
        String group = "";
        for (Line line : lines) {
            table.append("| ")
                    .append(line.group().equals(group) ? "" : line.group())
                    .append(" | ")
                    .append(line.title())
                    .append(" | ")
                    .append(TextTable.nanos(Statistics.median(line.java())))
                    .append(" | ")
                    .append(line.hasC() ? TextTable.nanos(Statistics.median(line.c())) : "")
                    .append(" | ")
                    .append(ratio(line))
                    .append(" |\n");
            group = line.group();
        }
        List<Latency> latencies = results.latencies()
                .stream()
                .filter(latency -> (latency.suite() + ":" + latency.variant()).equals(variant))
                .toList();
        if (!latencies.isEmpty()) {
            table.append(
                    "\n| latency, ns | | 50 % | 99 % | 99.9 % | CPU burnt |\n| --- | --- | --- | --- | --- | --- |\n");
        }
        for (Latency latency : latencies) {
            table.append(Html.format("| %s | %s | %,d | %,d | %,d | %s |%n", latency.title(),
                    latency.side().equals("c") ? "C" : "Java", latency.at(50), latency.at(99), latency.at(99.9),
                    Double.isNaN(latency.cpuShare()) ? "" : Html.format("%.0f %%", latency.cpuShare() * 100)));
        }
        return table.append('\n').toString();
    }

    private static String ratio(Line line) {
        Ratio ratio = line.ratio();
        return ratio == null ? ""
                : Html.format(line.sameWay() ? "%.2f (%.2f to %.2f)" : "%.2f (C does less)", ratio.value(), ratio.low(),
                        ratio.high());
    }
}
