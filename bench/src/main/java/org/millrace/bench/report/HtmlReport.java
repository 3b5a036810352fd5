package org.millrace.bench.report;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.millrace.bench.suite.Suite;
import org.millrace.bench.suite.Suites;

/** One self-contained page with all results. It needs no font, picture or request. A script sorts and filters. */
public final class HtmlReport {

    private final Results results;
    private final List<Movement> movements;
    private final StringBuilder html = new StringBuilder();

    private HtmlReport(Results results, List<Movement> movements) {
        this.results = results;
        this.movements = movements;
    }

    /**
     * Writes the page.
     *
     * @param results   measured results
     * @param movements changes since the baseline, null without one for this kind of machine
     * @param file      file to write
     * @throws IOException if it cannot be written
     */
    public static void write(Results results, List<Movement> movements, Path file) throws IOException {
        Files.writeString(file, render(results, movements));
    }

    /**
     * Returns the page.
     *
     * @param results   measured results
     * @param movements changes since the baseline, null without one for this kind of machine
     * @return HTML that is also XML
     */
    public static String render(Results results, List<Movement> movements) {
        HtmlReport report = new HtmlReport(results, movements);
        report.page();
        return report.html.toString();
    }

    private void page() {
        html.append("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
                + "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>"
                + "<title>What fences, polls, rings and crossings cost</title>\n<style>\n")
                .append(resource("report.css"))
                .append("</style></head>\n<body>\n");
        html.append("<h1>What fences, polls, rings and crossings cost</h1>\n<p class=\"soft\">")
                .append(Html.text(environment("processor")))
                .append(" · ")
                .append(Html.text(environment("JDK")))
                .append(" · ")
                .append(Html.text(environment("date")))
                .append("</p>\n");
        if (results.isSmoke()) {
            html.append("<p class=\"bad\">A run with --smoke: it shows that everything runs, and no figure here means "
                    + "anything.</p>\n");
        }
        summary();
        Map<String, List<Line>> bySuite = results.lines()
                .stream()
                .collect(Collectors.groupingBy(Line::suite, LinkedHashMap::new, Collectors.toList()));
        Map<String, List<Latency>> latencies = results.latencies()
                .stream()
                .collect(Collectors.groupingBy(Latency::suite, LinkedHashMap::new, Collectors.toList()));
        List<Suite> suites = Suites.ALL.stream()
                .filter(suite -> bySuite.containsKey(suite.name()) || latencies.containsKey(suite.name()))
                .toList();
        html.append("<nav>");
        suites.forEach(suite -> html.append("<a href=\"#")
                .append(suite.name())
                .append("\">")
                .append(Html.text(suite.title()))
                .append("</a> "));
        html.append("<a href=\"#machine\">Machine and method</a></nav>\n");
        howToRead();
        changes();
        html.append(
                "<p class=\"tools\"><input id=\"filter\" type=\"search\" placeholder=\"show lines with …\"/> <label>sorted "
                        + "by <select id=\"sort\"><option value=\"\">group</option><option value=\"java\">Java</option><option "
                        + "value=\"c\">C</option><option value=\"ratio\">Java / C</option></select></label></p>\n");
        suites.forEach(suite -> suite(suite, bySuite.getOrDefault(suite.name(), List.of()),
                latencies.getOrDefault(suite.name(), List.of())));
        machine();
        html.append("<script>//<![CDATA[\n").append(resource("report.js")).append("//]]></script>\n</body></html>\n");
    }

    private void summary() {
        List<Line> compared = results.lines().stream().filter(line -> line.sameWay() && line.hasC()).toList();
        long met = compared.stream().filter(line -> line.ratio().value() <= Line.GOAL).count();
        long missed = compared.stream().filter(Line::misses).count();
        html.append("<div class=\"tiles\">");
        tile(String.valueOf(results.lines().size()), "lines measured");
        tile(met + " of " + compared.size(), Html.format("pairs with a ratio of %.2f or less", Line.GOAL));
        tile(String.valueOf(compared.size() - met - missed), "above it, but not beyond the noise");
        tile(String.valueOf(missed), "above it, explained below");
        tile(String.valueOf(results.lines().stream().filter(line -> line.modes() != null).count()),
                "lines with two placements");
        html.append("</div>\n");
    }

    private void tile(String value, String what) {
        html.append("<div class=\"tile\"><b>").append(value).append("</b>").append(Html.text(what)).append("</div>");
    }

    private void howToRead() {
        html.append(
                "<p>Times are nanoseconds for one operation, medians. In each plot <span class=\"java\">Java</span> "
                        + "is above, <span class=\"c\">C</span> "
                        + "below; the dot is the median, the bar reaches from the first to the third quartile, the "
                        + "axis is logarithmic. <b>Java / C</b> is the ratio "
                        + "of the medians within one JVM, the median over JVMs, and behind it the interval that "
                        + "holds 95 % of what resampling gives: "
                        + "<span class=\"good\">green</span> meets the goal, black is above it but perhaps by chance, "
                        + "<span class=\"bad\">red</span> is above it beyond the noise, <span "
                        + "class=\"soft\">grey</span> has no goal, since C does less.</p>\n");
        results.notes()
                .forEach(note -> html.append("<p class=\"soft\">Note: ").append(Html.text(note)).append("</p>\n"));
    }

    private void changes() {
        if (movements == null) {
            html.append("<p class=\"soft\">No baseline is checked in for this kind of machine.</p>\n");
            return;
        }
        html.append("<details")
                .append(movements.isEmpty() ? "" : " open=\"open\"")
                .append("><summary>Against the baseline of this kind of machine: ")
                .append(movements.isEmpty() ? "nothing moved beyond the noise"
                        : movements.size() + " lines moved beyond the noise")
                .append("</summary><ul>\n");
        movements.forEach(movement -> html.append("<li>").append(Html.text(movement)).append("</li>\n"));
        html.append("</ul></details>\n");
    }

    private void suite(Suite suite, List<Line> lines, List<Latency> latencies) {
        html.append("<h2 id=\"")
                .append(suite.name())
                .append("\">")
                .append(Html.text(suite.title()))
                .append("</h2>\n<p>")
                .append(Html.text(suite.description()))
                .append("</p>\n");
        List<Line> missing = lines.stream().filter(Line::misses).toList();
        if (!missing.isEmpty()) {
            html.append("<details><summary>Why ")
                    .append(missing.size())
                    .append(" of these pairs are above the goal</summary><ul>\n");
            Explanations.of(missing).forEach(reason -> html.append("<li>").append(Html.text(reason)).append("</li>\n"));
            missing.stream()
                    .filter(line -> Explanations.of(line) == null)
                    .forEach(line -> html.append("<li>")
                            .append(Html.text(line.variant() + ": " + line.title()))
                            .append(": not explained yet.</li>\n"));
            html.append("</ul></details>\n");
        }
        lines.stream()
                .collect(Collectors.groupingBy(Line::variant, LinkedHashMap::new, Collectors.toList()))
                .forEach((variant, ofVariant) -> html.append("<h3>")
                        .append(Html.text(variant))
                        .append("</h3>\n")
                        .append(LineRows.of(ofVariant)));
        latencies.stream()
                .collect(Collectors.groupingBy(latency -> latency.variant() + "/" + latency.id(), LinkedHashMap::new,
                        Collectors.toList()))
                .forEach((key, sides) -> html.append("<h3>")
                        .append(Html.text(sides.getFirst().variant() + ": " + sides.getFirst().title()))
                        .append("</h3>\n")
                        .append(LatencyFigure.of(sides)));
    }

    private void machine() {
        html.append("<h2 id=\"machine\">Machine and method</h2>\n<table class=\"facts\">\n");
        results.environment()
                .forEach((name, value) -> html.append("<tr><th>")
                        .append(Html.text(name))
                        .append("</th><td>")
                        .append(Html.text(value))
                        .append("</td></tr>\n"));
        html.append("</table>\n<p>Each variant runs in JVMs of its own, where Java's loop and C's run in turns on the "
                + "same thread and the same memory; so what "
                + "changes meanwhile meets both. C is compiled by the run and called in batches of a "
                + "millisecond or more, beside which the call is nothing. A "
                + "variant whose samples fall into two groups, or whose ratio scatters, is run again in "
                + "further JVMs. Distributions are HdrHistogram's. Steps "
                + "with set times count from when they should have come; round trips behind each other are "
                + "also shown corrected for coordinated omission: what "
                + "a long wait kept from being asked is counted as if it had been.</p>\n");
    }

    private String environment(String name) {
        return results.environment().getOrDefault(name, "?");
    }

    private static String resource(String name) {
        try (InputStream text = HtmlReport.class.getResourceAsStream(name)) {
            return new String(text.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new IllegalStateException("the jar lacks " + name, e);
        }
    }
}
