package org.millrace.bench.report;

import org.HdrHistogram.Histogram;

/**
 * A distribution of latencies.
 *
 * @param suite     its suite's name
 * @param variant   its variant
 * @param id        tells it from others of its variant; Java's and C's have the same
 * @param title     what it is
 * @param side      {@code java} or {@code c}
 * @param histogram nanoseconds
 * @param cpuShare  of a core that the waiting side burnt, 0 to 1; NaN if nobody asked
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
     * The latency that a part of all stayed below.
     *
     * @param percent 0 to 100
     * @return nanoseconds
     */
    public long at(double percent) {
        return histogram.getValueAtPercentile(percent);
    }

    /**
     * This distribution with what another JVM recorded. CPU shares are averaged by the number of recordings.
     *
     * @param more the same from elsewhere
     * @return both
     */
    public Latency plus(Latency more) {
        Histogram sum = histogram.copy();
        sum.add(more.histogram);
        double mine = (double) histogram.getTotalCount() / sum.getTotalCount();
        return new Latency(suite, variant, id, title, side, sum, cpuShare * mine + more.cpuShare * (1 - mine));
    }
}
