package org.millrace.bench.measure;

import java.util.List;

/**
 * Duration of measurements.
 *
 * @param warmUpNanos time for each side of each pair before its first sample
 * @param batchNanos  length of a sample: long compared with the clock's resolution, short compared with a time slice
 * @param rounds      number of samples of each side and JVM
 * @param forks       number of JVMs for each variant
 * @param maxForks    number of JVMs for a variant if its samples form two groups or scatter much
 * @param seconds     time after which no variant is repeated
 * @param full        whether the rare combinations are measured too
 */
public record Effort(long warmUpNanos, long batchNanos, int rounds, int forks, int maxForks, int seconds,
        boolean full) {

    /** Minutes for everything. */
    public static final Effort QUICK = new Effort(60_000_000L, 1_000_000L, 21, 2, 4, 200, false);
    /** An hour or so for everything. */
    public static final Effort FULL = new Effort(300_000_000L, 2_000_000L, 51, 5, 10, 5400, true);
    /** Shows that everything runs. Its figures are not meaningful. */
    public static final Effort SMOKE = new Effort(2_000_000L, 200_000L, 3, 1, 1, 60, false);

    /**
     * Returns the same effort with another number of JVMs.
     *
     * @param number number for each variant, independent of the scatter of its samples
     * @return a copy
     */
    public Effort withForks(int number) {
        return new Effort(warmUpNanos, batchNanos, rounds, number, number, seconds, full);
    }

    /**
     * Returns the effort for a run of a few lines. In a full run, earlier lines warm up code that several lines share.
     * Without them, each line must warm up for as long as in a full run.
     *
     * @return a copy
     */
    public Effort alone() {
        return new Effort(Math.max(warmUpNanos, FULL.warmUpNanos), batchNanos, rounds, forks, maxForks, seconds, full);
    }

    /**
     * Returns the same effort including the rare combinations.
     *
     * @return a copy
     */
    public Effort ofFullSet() {
        return new Effort(warmUpNanos, batchNanos, rounds, forks, maxForks, seconds, true);
    }

    /**
     * Returns the effort as an argument for a child.
     *
     * @return text that {@link #parse} reads
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
