package org.millrace.bench.suite;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import org.HdrHistogram.Histogram;
import org.millrace.bench.comparator.CLibrary;
import org.millrace.bench.measure.Effort;
import org.millrace.bench.measure.Interleaver;
import org.millrace.bench.measure.Pair;
import org.millrace.bench.measure.Samples;

/** What a suite measures with, and where it leaves what it measured. */
public final class Bench {

    private final Effort effort;
    private final Interleaver interleaver;
    private final CLibrary c;
    private final Cores cores;
    private final List<String> java;
    private final Predicate<String> wanted;
    private final List<Measured> lines = new ArrayList<>();
    private final List<Distribution> distributions = new ArrayList<>();
    private final List<String> notes = new ArrayList<>();
    private final Map<String, String> facts = new LinkedHashMap<>();

    /** A pair and what this JVM measured of it. */
    public record Measured(Pair pair, Samples samples) {
    }

    /**
     * Latencies in nanoseconds.
     *
     * @param id        tells it from others
     * @param title     what a reader is shown
     * @param side      {@code java} or {@code c}
     * @param histogram what was recorded; the title says whether it was corrected for coordinated omission
     * @param cpuShare  of a core that the waiting side burnt, 0 to 1; NaN where nobody asked
     */
    public record Distribution(String id, String title, String side, Histogram histogram, double cpuShare) {
    }

    /**
     * A place for results.
     *
     * @param effort how long is measured
     * @param c      the comparators
     * @param cores  where threads are bound to
     * @param java   how a JVM like this one is started that runs this program
     * @param wanted which pairs, by id
     */
    public Bench(Effort effort, CLibrary c, Cores cores, List<String> java, Predicate<String> wanted) {
        this.effort = effort;
        this.interleaver = new Interleaver(effort);
        this.c = c;
        this.cores = cores;
        this.java = java;
        this.wanted = wanted;
    }

    /**
     * Measures a pair, if it is wanted. One that fails is noted, and the others go on.
     *
     * @param pair the pair
     */
    public void measure(Pair pair) {
        if (!wanted.test(pair.id())) {
            return;
        }
        try {
            lines.add(new Measured(pair, interleaver.measure(pair)));
        } catch (RuntimeException e) {
            note(pair.id() + " failed: " + e);
        }
    }

    /**
     * Adds latencies.
     *
     * @param distribution what was recorded
     */
    public void add(Distribution distribution) {
        distributions.add(distribution);
    }

    /**
     * Tells the reader something.
     *
     * @param note a sentence
     */
    public void note(String note) {
        notes.add(note);
    }

    /**
     * Tells the reader a fact about where was measured.
     *
     * @param name  its name
     * @param value its value
     */
    public void fact(String name, String value) {
        facts.put(name, value);
    }

    /**
     * Whether a pair is to be measured: for what is costly to prepare.
     *
     * @param id its id
     * @return whether {@link #measure} would
     */
    public boolean wants(String id) {
        return wanted.test(id);
    }

    /** {@return how long is measured} */
    public Effort effort() {
        return effort;
    }

    /** {@return the comparators} */
    public CLibrary c() {
        return c;
    }

    /** {@return where threads are bound to} */
    public Cores cores() {
        return cores;
    }

    /** {@return how a JVM like this one is started that runs this program; arguments follow} */
    public List<String> java() {
        return java;
    }

    /** {@return what was measured so far} */
    public List<Measured> lines() {
        return lines;
    }

    /** {@return the latencies so far} */
    public List<Distribution> distributions() {
        return distributions;
    }

    /** {@return the notes so far} */
    public List<String> notes() {
        return notes;
    }

    /** {@return the facts so far} */
    public Map<String, String> facts() {
        return facts;
    }
}
