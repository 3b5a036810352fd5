package org.millrace.bench.report;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Two builds beside each other. Their JVMs are compared in pairs: the first of one build with the first of the other,
 * which ran immediately before or after it.
 */
public final class Comparison {

    /** Minimum number of pairs for a verdict. */
    private static final int MIN_PAIRS = 5;
    /** Minimum change of the median ratio for a verdict. */
    private static final double MIN_CHANGE = 0.02;

    private Comparison() {}

    /**
     * Compares the benchmarks that both have.
     *
     * @param before results of one build
     * @param after  results of the other
     * @return a table with the ratio of times, below 1 if the second is faster; its range over the pairs; and a verdict
     *         if all of at least five pairs agree on it and the change is 2 % or more
     */
    public static String of(List<JmhResult> before, List<JmhResult> after) {
        Map<String, List<Double>> times = times(before);
        StringBuilder table =
                new StringBuilder("| benchmark | A | B | B / A | pairs |\n| --- | --- | --- | --- | --- |\n");
        times(after).forEach((key, second) -> {
            List<Double> first = times.getOrDefault(key, List.of());
            double[] ratios = new double[Math.min(first.size(), second.size())];
            Arrays.setAll(ratios, i -> second.get(i) / first.get(i));
            if (ratios.length == 0) {
                return;
            }
            double low = Statistics.quantile(ratios, 0);
            double high = Statistics.quantile(ratios, 1);
            double ratio = Statistics.median(ratios);
            boolean clear = ratios.length >= MIN_PAIRS && Math.abs(ratio - 1) >= MIN_CHANGE;
            String verdict = clear && high < 1 ? ", faster" : clear && low > 1 ? ", slower" : "";
            table.append(String.format(Locale.ROOT, "| %s | %s | %s | %.3f (%.3f to %.3f)%s | %d |%n", key,
                    median(first), median(second), ratio, low, high, verdict, ratios.length));
        });
        return table.toString();
    }

    /** Returns the median of each JVM by benchmark. */
    private static Map<String, List<Double>> times(List<JmhResult> results) {
        Map<String, List<Double>> times = new LinkedHashMap<>();
        for (JmhResult result : results) {
            for (double[] fork : result.primaryMetric().rawData()) {
                times.computeIfAbsent(result.key(), _ -> new ArrayList<>()).add(Statistics.median(fork));
            }
        }
        return times;
    }

    private static String median(List<Double> times) {
        return Tables.nanos(Statistics.median(times.stream().mapToDouble(time -> time).toArray()));
    }
}
