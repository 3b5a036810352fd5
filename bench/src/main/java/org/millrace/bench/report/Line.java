package org.millrace.bench.report;

import java.util.ArrayList;
import java.util.List;
import org.millrace.bench.measure.Modes;
import org.millrace.bench.measure.Ratio;
import org.millrace.bench.measure.Samples;
import org.millrace.bench.measure.Statistics;

/**
 * A line of the result.
 *
 * @param suite   name of its suite
 * @param variant its variant
 * @param id      identifies it within its variant
 * @param group   heading of its group
 * @param title   its title
 * @param sameWay whether Java and C access memory in the same way
 * @param bytes   payload of an operation, 0 without one
 * @param forks   samples of each JVM
 */
public record Line(String suite, String variant, String id, String group, String title, boolean sameWay, long bytes,
        List<Samples> forks) {

    /** Java's goal if both sides access memory in the same way: at most C's time multiplied by this factor. */
    public static final double GOAL = 1.05;

    /**
     * Shortest meaningful time, in nanoseconds. Shorter times are loop overhead, so their ratio gives no information
     * about accesses.
     */
    public static final double RESOLUTION = 0.02;

    /**
     * Returns its name among all lines.
     *
     * @return suite, variant and id
     */
    public String key() {
        return suite + ":" + variant + "/" + id;
    }

    /**
     * Whether C was measured too.
     *
     * @return false without a C side
     */
    public boolean hasC() {
        return forks.stream().allMatch(samples -> samples.c().length > 0);
    }

    /**
     * All samples of Java.
     *
     * @return nanoseconds per operation
     */
    public double[] java() {
        return Statistics.join(forks.stream().map(Samples::java).toArray(double[][]::new));
    }

    /**
     * All samples of C.
     *
     * @return nanoseconds per operation; empty without a C side
     */
    public double[] c() {
        return Statistics.join(forks.stream().map(Samples::c).toArray(double[][]::new));
    }

    /**
     * Java's time over C's.
     *
     * @return the ratio, or null without a C side
     */
    public Ratio ratio() {
        return hasC() ? Ratio.of(forks) : null;
    }

    /**
     * Returns whether Java misses the goal by more than chance: even the lower end of the ratio's interval exceeds it.
     *
     * @return true if an explanation is due
     */
    public boolean misses() {
        Ratio ratio = ratio();
        return sameWay && ratio != null && ratio.low() > GOAL
                && Statistics.median(java()) - Statistics.median(c()) > RESOLUTION;
    }

    /**
     * The two groups of C's samples, or of Java's samples without a C side.
     *
     * @return null if the samples form one group
     */
    public Modes modes() {
        return Modes.of(hasC() ? c() : java());
    }

    /**
     * Returns whether more JVMs should measure the line, because its samples form two groups or its ratio is uncertain.
     *
     * @return true if the present samples are not conclusive
     */
    public boolean unsettled() {
        Ratio ratio = ratio();
        return modes() != null || ratio != null && ratio.high() - ratio.low() > 0.2 * ratio.value();
    }

    /**
     * Returns this line with the samples of further JVMs.
     *
     * @param more the same line from other JVMs
     * @return both
     */
    public Line plus(Line more) {
        List<Samples> all = new ArrayList<>(forks);
        all.addAll(more.forks);
        return new Line(suite, variant, id, group, title, sameWay, bytes, all);
    }
}
