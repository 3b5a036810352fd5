package org.millrace.bench.report;

import java.util.SplittableRandom;

/**
 * Time of one side divided by the time of the other, with its uncertainty.
 *
 * @param value ratio of the medians over all JVMs
 * @param low   lower end of the interval that contains 95 % of the resampled values
 * @param high  upper end of that interval
 */
record Ratio(double value, double low, double high) {

    private static final int RESAMPLES = 1000;
    private static final long SEED = 0x6d696c6c72616365L;

    /** Returns the ratio, the same for the same samples. Each side has one array for each JVM. */
    static Ratio of(double[][] side, double[][] other) {
        SplittableRandom random = new SplittableRandom(SEED);
        double[] resampled = new double[RESAMPLES];
        for (int i = 0; i < RESAMPLES; i++) {
            resampled[i] = medianOfDraw(side, random) / medianOfDraw(other, random);
        }
        return new Ratio(new JmhResult.Metric(side).median() / new JmhResult.Metric(other).median(),
                Statistics.quantile(resampled, 0.025), Statistics.quantile(resampled, 0.975));
    }

    /** Draws JVMs, and as many samples of each as it has. */
    private static double medianOfDraw(double[][] forks, SplittableRandom random) {
        double[][] drawn = new double[forks.length][];
        for (int fork = 0; fork < drawn.length; fork++) {
            double[] samples = forks[random.nextInt(forks.length)];
            drawn[fork] = random.ints(samples.length, 0, samples.length).mapToDouble(i -> samples[i]).toArray();
        }
        return new JmhResult.Metric(drawn).median();
    }
}
