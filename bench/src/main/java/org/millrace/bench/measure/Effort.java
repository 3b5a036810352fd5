package org.millrace.bench.measure;

import java.util.List;

/**
 * How long is measured.
 *
 * @param warmUpNanos for each side of each pair, before its first sample
 * @param batchNanos  length of a sample: long beside the clock's resolution, short beside a scheduler's time slice
 * @param rounds      samples of each side and JVM
 * @param forks       JVMs for each variant
 * @param maxForks    JVMs for a variant whose samples fall into two groups, or scatter
 * @param seconds     after which nothing is repeated any more
 * @param full        whether the rare combinations are measured too
 */
public record Effort(long warmUpNanos, long batchNanos, int rounds, int forks, int maxForks, int seconds,
        boolean full) {

    /** Minutes for everything. */
    public static final Effort QUICK = new Effort(60_000_000L, 1_000_000L, 21, 2, 4, 200, false);
    /** An hour or so for everything. */
    public static final Effort FULL = new Effort(300_000_000L, 2_000_000L, 51, 5, 10, 5400, true);
    /** Shows that everything runs; its figures mean nothing. */
    public static final Effort SMOKE = new Effort(2_000_000L, 200_000L, 3, 1, 1, 60, false);

    /**
     * The same with another number of JVMs.
     *
     * @param number for each variant, however its samples scatter
     * @return a copy
     */
    public Effort withForks(int number) {
        return new Effort(warmUpNanos, batchNanos, rounds, number, number, seconds, full);
    }

    /**
     * The same for some lines alone. What the lines before them would have warmed up they must warm up themselves, so
     * it takes as long as in a full run.
     *
     * @return a copy
     */
    public Effort alone() {
        return new Effort(Math.max(warmUpNanos, FULL.warmUpNanos), batchNanos, rounds, forks, maxForks, seconds, full);
    }

    /**
     * The same for the rare combinations too.
     *
     * @return a copy
     */
    public Effort ofFullSet() {
        return new Effort(warmUpNanos, batchNanos, rounds, forks, maxForks, seconds, true);
    }

    /**
     * As arguments for a child.
     *
     * @return what {@link #parse} reads
     */
    public String text() {
        return String.join(",", List.of("" + warmUpNanos, "" + batchNanos, "" + rounds, "" + forks, "" + maxForks,
                "" + seconds, "" + full));
    }

    /**
     * Reads what {@link #text} wrote.
     *
     * @param text seven values
     * @return the effort
     */
    public static Effort parse(String text) {
        String[] parts = text.split(",");
        return new Effort(Long.parseLong(parts[0]), Long.parseLong(parts[1]), Integer.parseInt(parts[2]),
                Integer.parseInt(parts[3]), Integer.parseInt(parts[4]), Integer.parseInt(parts[5]),
                Boolean.parseBoolean(parts[6]));
    }
}
