package org.millrace.bench.measure;

import java.util.Arrays;

/**
 * Two groups of samples. They occur if threads sometimes run on two cores of one die and sometimes on two dies.
 *
 * @param low   median of the faster group
 * @param high  median of the slower group
 * @param share share of the samples in the slower group, 0 to 1
 */
public record Modes(double low, double high, double share) {

    /** Minimum share of samples in a group. Smaller groups are disturbances. */
    private static final double MIN_SHARE = 0.15;
    /** Minimum factor between the groups' medians. */
    private static final double MIN_FACTOR = 1.25;
    /** Minimum share of the samples' scatter (variance of their logarithms) that the split explains. */
    private static final double MIN_EXPLAINED = 0.8;

    /**
     * Splits samples at the point where the split explains most of the scatter.
     *
     * @param samples samples in any order
     * @return the two groups, or null if there is only one
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
