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
 * @param suite   its suite's name
 * @param variant its variant
 * @param id      tells it from others of its variant
 * @param group   what it stands under
 * @param title   what it is
 * @param sameWay whether Java and C touch memory in the same way
 * @param bytes   payload of an operation; 0 if there is none
 * @param forks   what each JVM measured
 */
public record Line(String suite, String variant, String id, String group, String title, boolean sameWay, long bytes,
        List<Samples> forks) {

    /** Java's goal where both sides touch memory in the same way: C's time and this much of it at the most. */
    public static final double GOAL = 1.05;

    /** What is below this is all loop: a ratio of it says nothing about accesses. Nanoseconds. */
    public static final double RESOLUTION = 0.02;

    /**
     * Its name among all lines.
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
     * Whether the goal is missed, and not by chance: even the lower end of the interval is above it.
     *
     * @return true if an explanation is due
     */
    public boolean misses() {
        Ratio ratio = ratio();
        return sameWay && ratio != null && ratio.low() > GOAL
                && Statistics.median(java()) - Statistics.median(c()) > RESOLUTION;
    }

    /**
     * The two groups that C's samples, or else Java's, fall into.
     *
     * @return null if they are one
     */
    public Modes modes() {
        return Modes.of(hasC() ? c() : java());
    }

    /**
     * Whether more JVMs should measure it: its samples fall into two groups, or its ratio may be on either side of the
     * goal by a wide margin.
     *
     * @return true if what there is does not settle it
     */
    public boolean unsettled() {
        Ratio ratio = ratio();
        return modes() != null || ratio != null && ratio.high() - ratio.low() > 0.2 * ratio.value();
    }

    /**
     * This line with what further JVMs measured.
     *
     * @param more the same line from elsewhere
     * @return both
     */
    public Line plus(Line more) {
        List<Samples> all = new ArrayList<>(forks);
        all.addAll(more.forks);
        return new Line(suite, variant, id, group, title, sameWay, bytes, all);
    }
}
