package org.millrace.bench.measure;

import java.util.List;
import java.util.SplittableRandom;

/**
 * Java's time divided by C's, with its uncertainty.
 *
 * @param value median over JVMs of the ratio of medians within each JVM, where both sides had the same cores
 * @param low   lower end of the interval that contains 95 % of the resampled values
 * @param high  upper end of that interval
 */
public record Ratio(double value, double low, double high) {

    private static final int RESAMPLES = 1000;
    private static final long SEED = 0x6d696c6c72616365L;

    /**
     * Returns the ratio over several JVMs.
     *
     * @param forks their samples, all with a C side
     * @return the ratio, the same for the same samples
     */
    public static Ratio of(List<Samples> forks) {
        SplittableRandom random = new SplittableRandom(SEED);
        double[] resampled = new double[RESAMPLES];
        for (int i = 0; i < RESAMPLES; i++) {
            double[] ratios = new double[forks.size()];
            for (int fork = 0; fork < ratios.length; fork++) {
                Samples samples = forks.get(random.nextInt(forks.size()));
                ratios[fork] = medianOfDraw(samples.java(), random) / medianOfDraw(samples.c(), random);
            }
            resampled[i] = Statistics.median(ratios);
        }
        double value = Statistics.median(forks.stream()
                .mapToDouble(samples -> Statistics.median(samples.java()) / Statistics.median(samples.c()))
                .toArray());
        return new Ratio(value, Statistics.quantile(resampled, 0.025), Statistics.quantile(resampled, 0.975));
    }

    private static double medianOfDraw(double[] samples, SplittableRandom random) {
        double[] draw = new double[samples.length];
        for (int i = 0; i < draw.length; i++) {
            draw[i] = samples[random.nextInt(samples.length)];
        }
        return Statistics.median(draw);
    }
}
