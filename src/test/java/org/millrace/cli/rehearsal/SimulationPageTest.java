package org.millrace.cli.rehearsal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.millrace.rehearsal.Forecast;
import org.millrace.rehearsal.RecordedRun;

/** The picture of a simulation, read as a browser reads it. */
class SimulationPageTest {

    private static final Pattern WIDTH = Pattern.compile("<i class=\"\\w+\" style=\"width:([0-9.]+)%\">");

    private static Forecast.Row row(String name, long bytes, double time, double stragglers) {
        return new Forecast.Row(new RecordedRun.Kind(name, bytes), "ring", 1024, 1, 0, time, time / 2, time / 4,
                time / 8, time / 8, stragglers);
    }

    private static String page(Forecast.Row... rows) {
        return new SimulationPage(List.of(rows), List.of("a < b & c")).toString();
    }

    /** Returns the length of each bar in percent of the axis. */
    private static List<Double> bars(String page) {
        List<Double> bars = new ArrayList<>();
        page.lines().filter(line -> line.contains("<small>")).forEach(line -> {
            Matcher parts = WIDTH.matcher(line);
            bars.add(parts.results().map(part -> part.group(1)).mapToDouble(Double::parseDouble).sum());
        });
        return bars;
    }

    @Test
    void barsOfAllKindsAreProportionalToTheirTimes() {
        List<Double> bars = bars(page(row("all_reduce", 1 << 20, 193_678_000, 0), row("all_reduce", 8, 5_000_000, 3e6),
                row("all_to_all", 8, 96_839_000, 0)));
        assertEquals(3, bars.size());
        assertEquals(8_000_000 / 193_678_000.0, bars.get(0) / bars.get(1), 1e-4, "the sizes of a kind, in order");
        assertEquals(0.5, bars.get(2) / bars.get(1), 1e-4, "another kind");
    }

    @Test
    void theAxisHasTicksAtTheTimesOfTheBars() {
        for (double longest : new double[] {400, 999_999, 1e6, 2_500_000, 193_678_000, 51e9}) {
            String page = page(row("all_reduce", 8, longest, 0));
            Matcher found = Pattern.compile("<b>([0-9.]+) (.+?)</b>").matcher(page);
            List<Double> ticks = new ArrayList<>();
            for (MatchResult tick : found.results().toList()) {
                double unit = List.of("µs", "ms", "s").indexOf(tick.group(2));
                ticks.add(Double.parseDouble(tick.group(1)) * 1e3 * Math.pow(1e3, unit));
            }
            double axis = ticks.size() * ticks.get(1);
            assertTrue(ticks.size() >= 3 && ticks.size() <= 5, "ticks: " + ticks);
            assertEquals(axis * bars(page).getFirst() / 100, longest, longest / 1e4, "ticks: " + ticks);
            Matcher grid = Pattern.compile("/ ([0-9.]+)%").matcher(page);
            assertTrue(grid.find());
            assertEquals(100.0 / ticks.size(), Double.parseDouble(grid.group(1)), 1e-9);
        }
    }

    @Test
    void eachBarHasItsTimeAndTheTimesOfItsParts() {
        String page = page(row("all_reduce", 1 << 20, 193_678_000, 2_500));
        assertTrue(page.contains("<h2>all_reduce, 1,048,576 B</h2>"), page);
        assertTrue(page.contains("<span>1,024 ranks, ring</span><span class=\"time\">193.7 ms</span>"), page);
        assertTrue(
                page.contains("latency 96.8 ms, bandwidth 48.4 ms, proxy 24.2 ms, kernel 24.2 ms, stragglers 2.5 µs"),
                page);
        assertTrue(page.contains("a &lt; b &amp; c"), page);
        assertFalse(page.contains("<script") || page.contains("src=") || page.contains("href="), page);
    }
}
