package org.millrace.bench.report;

import java.util.Arrays;

/** Order statistics of samples. All are robust: a sample that another program disturbed changes none of them much. */
final class Statistics {

    private Statistics() {}

    /**
     * Returns the value below which a part of the samples lies. It interpolates between two samples.
     *
     * @param samples samples in any order, not empty
     * @param part    0 to 1
     * @return the quantile
     */
    static double quantile(double[] samples, double part) {
        if (samples.length == 0) {
            throw new IllegalArgumentException("no samples");
        }
        double[] sorted = samples.clone();
        Arrays.sort(sorted);
        double place = part * (sorted.length - 1);
        int below = (int) place;
        int above = Math.min(below + 1, sorted.length - 1);
        return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
    }

    /**
     * Returns the median.
     *
     * @param samples samples in any order, not empty
     * @return the median
     */
    static double median(double[] samples) {
        return quantile(samples, 0.5);
    }
}
