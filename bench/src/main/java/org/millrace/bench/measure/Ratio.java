package org.millrace.bench.measure;

import java.util.List;
import java.util.SplittableRandom;

/**
 * Java's time over C's, with what it may have been.
 *
 * @param value the median over JVMs of the ratio of medians within each: both sides of a JVM had the same cores
 * @param low   lower end of the interval that holds 95 % of what resampling gives
 * @param high  its upper end
 */
public record Ratio(double value, double low, double high) {

    private static final int RESAMPLES = 1000;
    private static final long SEED = 0x6d696c6c72616365L;

    /**
     * The ratio of what several JVMs measured.
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
