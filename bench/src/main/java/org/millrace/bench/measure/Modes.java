package org.millrace.bench.measure;

import java.util.Arrays;

/**
 * Whether samples fall into two groups, as those of threads do that sometimes get two cores of one die and sometimes of
 * two.
 *
 * @param low   median of the faster group
 * @param high  median of the slower one
 * @param share how many of the samples are in the slower group, 0 to 1
 */
public record Modes(double low, double high, double share) {

    /** A group is no group if fewer samples than this are in it: those were disturbed. */
    private static final double MIN_SHARE = 0.15;
    /** The groups' medians differ by at least this factor. */
    private static final double MIN_FACTOR = 1.25;
    /** Of the samples' scatter (variance of their logarithms) this much is gone once they are split. */
    private static final double MIN_EXPLAINED = 0.8;

    /**
     * Splits samples where the split explains most.
     *
     * @param samples in any order
     * @return the two groups, or null if they are one
     */
    public static Modes of(double[] samples) {
        int count = samples.length;
        if (count < 8) {
            return null;
        }
        double[] logs = Arrays.stream(samples).map(sample -> Math.log(Math.max(sample, 1e-3))).sorted().toArray();
        double mean = Arrays.stream(logs).average().orElseThrow();
        double total = Arrays.stream(logs).map(log -> (log - mean) * (log - mean)).sum();
        int margin = (int) Math.ceil(count * MIN_SHARE);
        double sumBelow = 0;
        double best = 0;
        int split = 0;
        for (int below = 1; below < count; below++) {
            sumBelow += logs[below - 1];
            if (below < margin || count - below < margin) {
                continue;
            }
            double meanBelow = sumBelow / below;
            double meanAbove = (mean * count - sumBelow) / (count - below);
            double between =
                    (double) below * (count - below) / count * (meanAbove - meanBelow) * (meanAbove - meanBelow);
            if (between > best) {
                best = between;
                split = below;
            }
        }
        if (split == 0 || best < MIN_EXPLAINED * total) {
            return null;
        }
        double low = Math.exp(Statistics.median(Arrays.copyOfRange(logs, 0, split)));
        double high = Math.exp(Statistics.median(Arrays.copyOfRange(logs, split, count)));
        return high / low < MIN_FACTOR ? null : new Modes(low, high, (double) (count - split) / count);
    }
}
