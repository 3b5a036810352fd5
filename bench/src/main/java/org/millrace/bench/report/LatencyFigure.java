package org.millrace.bench.report;

import java.util.List;

/** Distributions of the same latency: the share of samples below each value. */
final class LatencyFigure {

    private static final double[] PERCENTS = {50, 90, 99, 99.9, 99.99};
    /** Number of nines of the largest share on the axis: 4 for 99.99 percent of the samples. */
    private static final double NINES = 4;
    private static final int STEPS = 160;

    private LatencyFigure() {}

    static String of(List<Latency> sides) {
        LogScale scale = new LogScale(sides.stream().mapToLong(side -> side.at(0.01)).min().orElse(1),
                sides.stream().mapToLong(side -> side.at(99.99)).max().orElse(1));
        StringBuilder html =
                new StringBuilder("<figure><figcaption>Below which latency which part of all stayed</figcaption>\n"
                        + "<svg role=\"img\" aria-label=\"latency by percentile\">");
        for (double tick : scale.ticks()) {
            double place = height(scale, tick);
            html.append(Html.format(
                    "<line x1=\"60\" x2=\"100%%\" y1=\"%.1f%%\" y2=\"%.1f%%\" stroke=\"var(--line)\"/>"
                            + "<text x=\"54\" y=\"%.1f%%\" dy=\"4\" text-anchor=\"end\">%s</text>",
                    place, place, place, Html.text(LogScale.name(tick))));
        }
        html.append("<svg x=\"60\" y=\"0\" width=\"calc(100% - 60px)\" height=\"90%\" style=\"width:calc(100% - "
                + "60px);height:90%\" " + "viewBox=\"0 0 100 100\" preserveAspectRatio=\"none\">");
        for (Latency side : sides) {
            html.append(Html.format("<polyline fill=\"none\" stroke=\"var(--%s)\" stroke-width=\"2\" "
                    + "vector-effect=\"non-scaling-stroke\" points=\"", side.side()));
            for (int step = 0; step <= STEPS; step++) {
                double nines = NINES * step / STEPS;
                html.append(Html.format("%.2f,%.2f ", 100 * nines / NINES,
                        100 - scale.place(side.at(100 - 100 * Math.pow(10, -nines)))));
            }
            html.append("\"/>");
        }
        html.append("</svg>");
        html.append("<text x=\"60\" y=\"97%\">0 %</text>");
        for (int nines = 1; nines <= NINES; nines++) {
            String anchor = nines == NINES ? "end" : "middle";
            html.append(Html.format("<text x=\"%.1f%%\" y=\"97%%\" text-anchor=\"%s\">%s %%</text>",
                    14 + 86 * nines / NINES, anchor, PERCENTS[nines]));
        }
        html.append("</svg>\n");
        return html.append(table(sides)).append("</figure>\n").toString();
    }

    private static double height(LogScale scale, double value) {
        return 90 - 0.9 * scale.place(value);
    }

    private static String table(List<Latency> sides) {
        boolean cpu = sides.stream().anyMatch(side -> !Double.isNaN(side.cpuShare()));
        StringBuilder html = new StringBuilder("<div class=\"scroll\"><table class=\"latency\"><tr><th></th>");
        for (double percent : PERCENTS) {
            html.append("<th>").append(percent).append(" %</th>");
        }
        html.append("<th>longest</th>").append(cpu ? "<th>CPU burnt</th>" : "").append("<th>recorded</th></tr>\n");
        for (Latency side : sides) {
            html.append(
                    Html.format("<tr><td class=\"%s\">%s</td>", side.side(), side.side().equals("c") ? "C" : "Java"));
            for (double percent : PERCENTS) {
                html.append("<td>").append(time(side.at(percent))).append("</td>");
            }
            html.append("<td>")
                    .append(time(side.at(100)))
                    .append("</td>")
                    .append(cpu ? Html.format("<td>%.0f %%</td>", side.cpuShare() * 100) : "");
            html.append(Html.format("<td>%,d</td></tr>%n", side.histogram().getTotalCount()));
        }
        return html.append("</table></div>").toString();
    }

    private static String time(long nanos) {
        return nanos < 1000 ? nanos + " ns"
                : nanos < 1_000_000 ? Html.format("%.1f µs", nanos / 1e3) : Html.format("%.1f ms", nanos / 1e6);
    }
}
