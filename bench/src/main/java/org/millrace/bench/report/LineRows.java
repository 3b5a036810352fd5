package org.millrace.bench.report;

import java.util.Arrays;
import java.util.List;
import org.millrace.bench.measure.Modes;
import org.millrace.bench.measure.Ratio;
import org.millrace.bench.measure.Statistics;

/**
 * The lines of a variant as rows of title, plot, times and ratio; on a narrow page the parts of a row stand below each
 * other.
 */
final class LineRows {

    private static final String JAVA = "java";
    private static final String C = "c";

    private final StringBuilder html = new StringBuilder();
    private final LogScale scale;

    private LineRows(List<Line> lines) {
        double[] all = lines.stream()
                .flatMapToDouble(line -> Arrays.stream(
                        Statistics.join(quartiles(line.java()), line.hasC() ? quartiles(line.c()) : new double[0])))
                .toArray();
        scale = new LogScale(Statistics.quantile(all, 0), Statistics.quantile(all, 1));
    }

    static String of(List<Line> lines) {
        LineRows rows = new LineRows(lines);
        rows.html.append(
                "<div class=\"grid\">\n<div class=\"row head\"><span>one operation</span><span class=\"plot axis\">")
                .append(rows.axis())
                .append("</span><span class=\"number java\">Java, ns</span><span class=\"number c\">C, ns</span>"
                        + "<span class=\"number\">Java / C</span></div>\n");
        String group = "";
        for (Line line : lines) {
            if (!line.group().equals(group)) {
                group = line.group();
                rows.html.append("<div class=\"group\">").append(Html.text(group)).append("</div>\n");
            }
            rows.row(line);
        }
        return rows.html.append("</div>\n").toString();
    }

    private void row(Line line) {
        html.append(Html.format("<div class=\"row\" data-java=\"%s\" data-c=\"%s\" data-ratio=\"%s\">",
                Statistics.median(line.java()), line.hasC() ? Statistics.median(line.c()) : "",
                line.ratio() == null ? "" : line.ratio().value()));
        html.append("<span class=\"title\">").append(Html.text(line.title())).append(asides(line)).append("</span>");
        html.append("<span class=\"plot\">").append(plot(line)).append("</span>");
        html.append("<span class=\"number\"><span class=\"label java\">Java </span>")
                .append(time(line, line.java()))
                .append("</span>");
        html.append("<span class=\"number\"><span class=\"label c\">C </span>")
                .append(line.hasC() ? time(line, line.c()) : "–")
                .append("</span>");
        html.append("<span class=\"number\">").append(ratio(line)).append("</span></div>\n");
    }

    private static String asides(Line line) {
        Modes modes = line.modes();
        return modes == null ? ""
                : Html.format(" <span class=\"soft\">(two placements: %s and %s, %.0f %% of the second)</span>",
                        TextTable.nanos(modes.low()), TextTable.nanos(modes.high()), modes.share() * 100);
    }

    private static String time(Line line, double[] samples) {
        double median = Statistics.median(samples);
        String rate = line.bytes() < 1024 ? ""
                : Html.format(" <span class=\"unit\">%.1f&#160;GB/s</span>", line.bytes() / median);
        return TextTable.nanos(median) + rate;
    }

    private static String ratio(Line line) {
        Ratio ratio = line.ratio();
        if (ratio == null) {
            return "–";
        }
        String look = !line.sameWay() ? "soft" : line.misses() ? "bad" : ratio.value() <= Line.GOAL ? "good" : "unsure";
        return Html.format("<span class=\"label\">ratio </span><span class=\"%s\">%.2f</span> <span "
                + "class=\"interval\">%.2f–%.2f</span>", look, ratio.value(), ratio.low(), ratio.high());
    }

    private String axis() {
        StringBuilder svg = new StringBuilder("<svg role=\"presentation\">");
        double last = -20;
        for (double tick : scale.ticks()) {
            double place = scale.place(tick);
            if (place - last > 13) {
                svg.append(Html.format("<text x=\"%.1f%%\" y=\"11\" text-anchor=\"middle\">%s</text>", place,
                        Html.text(LogScale.name(tick))));
                last = place;
            }
        }
        return svg.append("</svg>").toString();
    }

    private String plot(Line line) {
        StringBuilder svg = new StringBuilder(Html.format("<svg role=\"img\" aria-label=\"Java %s ns%s\">",
                TextTable.nanos(Statistics.median(line.java())),
                line.hasC() ? ", C " + TextTable.nanos(Statistics.median(line.c())) + " ns" : ""));
        for (double tick : scale.ticks()) {
            svg.append(Html.format("<line x1=\"%.1f%%\" x2=\"%.1f%%\" y1=\"0\" y2=\"100%%\" stroke=\"var(--line)\"/>",
                    scale.place(tick), scale.place(tick)));
        }
        mark(svg, line.java(), JAVA, "32%");
        if (line.hasC()) {
            mark(svg, line.c(), C, "68%");
        }
        return svg.append("</svg>").toString();
    }

    /** Draws a bar from the first to the third quartile, with a dot at the median. */
    private void mark(StringBuilder svg, double[] samples, String side, String height) {
        double[] quartiles = quartiles(samples);
        svg.append(Html.format(
                "<line x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"%s\" y2=\"%s\" stroke=\"var(--%s)\" stroke-width=\"3\" "
                        + "opacity=\".45\"/>",
                scale.place(quartiles[0]), scale.place(quartiles[2]), height, height, side));
        svg.append(Html.format("<circle cx=\"%.2f%%\" cy=\"%s\" r=\"4\" fill=\"var(--%s)\"/>",
                scale.place(quartiles[1]), height, side));
    }

    private static double[] quartiles(double[] samples) {
        return new double[] {Statistics.quantile(samples, 0.25), Statistics.median(samples),
                Statistics.quantile(samples, 0.75)};
    }
}
