package org.millrace.bench.report;

import org.HdrHistogram.Histogram;

/**
 * A distribution of latencies.
 *
 * @param suite     name of its suite
 * @param variant   its variant
 * @param id        identifies it within its variant. Java's and C's distributions have the same id
 * @param title     its title
 * @param side      {@code java} or {@code c}
 * @param histogram nanoseconds
 * @param cpuShare  share of a core that the waiting side used, 0 to 1. NaN if it was not measured
 */
public record Latency(String suite, String variant, String id, String title, String side, Histogram histogram,
        double cpuShare) {

    /**
     * Its name among all distributions.
     *
     * @return suite, variant, id and side
     */
    public String key() {
        return suite + ":" + variant + "/" + id + "/" + side;
    }

    /**
     * Returns the latency that the given percentage of samples does not exceed.
     *
     * @param percent 0 to 100
     * @return nanoseconds
     */
    public long at(double percent) {
        return histogram.getValueAtPercentile(percent);
    }

    /**
     * Returns this distribution with the recording of another JVM. CPU shares are averaged by the number of recordings.
     *
     * @param more the same distribution from another JVM
     * @return both
     */
    public Latency plus(Latency more) {
        Histogram sum = histogram.copy();
        sum.add(more.histogram);
        double mine = (double) histogram.getTotalCount() / sum.getTotalCount();
        return new Latency(suite, variant, id, title, side, sum, cpuShare * mine + more.cpuShare * (1 - mine));
    }
}
