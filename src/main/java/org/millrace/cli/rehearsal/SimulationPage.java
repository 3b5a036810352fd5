package org.millrace.cli.rehearsal;

import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import org.millrace.cli.base.Resource;
import org.millrace.cli.base.Units;
import org.millrace.rehearsal.Forecast;
import org.millrace.rehearsal.RecordedRun.Kind;

/**
 * An HTML page with a bar for each simulated operation. All bars share one time axis that begins at 0, so that the
 * lengths of any two bars can be compared. The page has no script and loads nothing from the network.
 */
final class SimulationPage {

    private static final String[] PARTS = {"latency", "bandwidth", "proxy", "kernel", "stragglers"};
    private final StringBuilder page = new StringBuilder();
    private final double axis;

    /** Creates the page. {@code notes} are the paragraphs below the bars. */
    SimulationPage(List<Forecast.Row> rows, List<String> notes) {
        double longest = rows.stream().mapToDouble(SimulationPage::time).max().orElse(0);
        double step = step(longest);
        int ticks = (int) Math.max(1, Math.ceil(longest / step));
        axis = ticks * step;
        page.append(String.format(Locale.ROOT, Resource.text(SimulationPage.class, "simulation.html"), 100.0 / ticks))
                .append("<p>");
        for (String part : PARTS) {
            page.append("<span class=\"key ").append(part).append("\"></span> ").append(part).append(" &nbsp; ");
        }
        page.append("</p>\n<div class=\"row axis\"><span></span><span></span><div class=\"bar\">");
        for (int tick = 0; tick < ticks; tick++) {
            page.append("<b>").append(Units.time(tick * step)).append("</b>");
        }
        page.append("</div></div>\n");
        Kind kind = null;
        for (Forecast.Row row : rows.stream().sorted(Comparator.comparing(Forecast.Row::kind)).toList()) {
            if (!row.kind().equals(kind)) {
                kind = row.kind();
                page.append(String.format(Locale.ROOT, "<h2>%s, %,d B</h2>%n", escape(kind.name()), kind.bytes()));
            }
            add(row);
        }
        notes.forEach(note -> page.append("<p class=\"soft\">").append(escape(note)).append("</p>\n"));
    }

    /**
     * Returns the distance of two ticks of the axis. The distance is 1, 2 or 5 times a power of ten, and the axis has 3
     * to 5 ticks.
     */
    private static double step(double longest) {
        double power = Math.pow(10, Math.floor(Math.log10(Math.max(1, longest) / 5)));
        return List.of(1, 2, 5)
                .stream()
                .mapToDouble(each -> each * power)
                .filter(each -> each * 5 >= longest)
                .findFirst()
                .orElse(10 * power);
    }

    private static double time(Forecast.Row row) {
        return row.time() + row.stragglers();
    }

    private void add(Forecast.Row row) {
        double[] parts = {row.latency(), row.bandwidth(), row.proxy(), row.kernel(), row.stragglers()};
        StringBuilder bar = new StringBuilder();
        StringBuilder words = new StringBuilder();
        for (int part = 0; part < parts.length; part++) {
            bar.append(String.format(Locale.ROOT, "<i class=\"%s\" style=\"width:%.4f%%\"></i>", PARTS[part],
                    100 * parts[part] / axis));
            words.append(part == 0 ? "" : ", ").append(PARTS[part]).append(' ').append(Units.time(parts[part]));
        }
        page.append(String.format(Locale.ROOT,
                "<div class=\"row\"><span>%,d ranks, %s</span><span class=\"time\">%s</span>", row.ranks(),
                row.algorithm(), Units.time(time(row))));
        page.append("<div class=\"bar\">").append(bar).append("</div><small>").append(words).append("</small></div>\n");
    }

    private static String escape(String text) {
        return text.replace("&", "&amp;").replace("<", "&lt;");
    }

    @Override
    public String toString() {
        return page.toString();
    }
}
