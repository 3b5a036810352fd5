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

/** Measures the pairs of a suite, and collects the results. */
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

    /** A pair and this JVM's samples of it. */
    public record Measured(Pair pair, Samples samples) {
    }

    /**
     * Latencies in nanoseconds.
     *
     * @param id        identifies it among others
     * @param title     title for readers
     * @param side      {@code java} or {@code c}
     * @param histogram recorded values. The title states whether they were corrected for coordinated omission
     * @param cpuShare  share of a core that the waiting side used, 0 to 1. NaN if it was not measured
     */
    public record Distribution(String id, String title, String side, Histogram histogram, double cpuShare) {
    }

    /**
     * Creates an instance without results.
     *
     * @param effort duration of measurements
     * @param c      the comparators
     * @param cores  cores to bind threads to
     * @param java   command that starts a JVM like this one with this program
     * @param wanted selects pairs by id
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
     * Measures a pair if it is selected. A failure is noted, and the other pairs continue.
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
     * @param distribution recorded latencies
     */
    public void add(Distribution distribution) {
        distributions.add(distribution);
    }

    /**
     * Adds a note for the reader.
     *
     * @param note a sentence
     */
    public void note(String note) {
        notes.add(note);
    }

    /**
     * Adds a fact about the environment of the measurement.
     *
     * @param name  its name
     * @param value its value
     */
    public void fact(String name, String value) {
        facts.put(name, value);
    }

    /**
     * Returns whether a pair is selected, for pairs with a costly preparation.
     *
     * @param id its id
     * @return whether {@link #measure} would measure it
     */
    public boolean wants(String id) {
        return wanted.test(id);
    }

    /** {@return the duration of measurements} */
    public Effort effort() {
        return effort;
    }

    /** {@return the comparators} */
    public CLibrary c() {
        return c;
    }

    /** {@return the cores to bind threads to} */
    public Cores cores() {
        return cores;
    }

    /** {@return the command that starts a JVM like this one with this program; arguments follow} */
    public List<String> java() {
        return java;
    }

    /** {@return the results so far} */
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
