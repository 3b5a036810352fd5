package org.millrace.bench.measure;

import java.util.Arrays;

/** Orders of samples. All are robust: a sample that another program disturbed moves none of them far. */
public final class Statistics {

    private Statistics() {}

    /**
     * The value below which a part of the samples lies, between two samples where it falls between them.
     *
     * @param samples in any order, not empty
     * @param part    0 to 1
     * @return the quantile
     */
    public static double quantile(double[] samples, double part) {
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
     * The middle.
     *
     * @param samples in any order, not empty
     * @return the median
     */
    public static double median(double[] samples) {
        return quantile(samples, 0.5);
    }

    /**
     * All samples of several JVMs.
     *
     * @param parts one array for each
     * @return one behind the other
     */
    public static double[] join(double[]... parts) {
        return Arrays.stream(parts).flatMapToDouble(Arrays::stream).toArray();
    }
}
