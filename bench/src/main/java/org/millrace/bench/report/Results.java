package org.millrace.bench.report;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** All that was measured, by one JVM or by many. */
public final class Results {

    /** The name in the environment of how long was measured. */
    public static final String EFFORT = "effort";

    private final Map<String, String> environment = new LinkedHashMap<>();
    private final Set<String> notes = new LinkedHashSet<>();
    private final Map<String, Line> lines = new LinkedHashMap<>();
    private final Map<String, Latency> latencies = new LinkedHashMap<>();

    /** Nothing yet. */
    public Results() {}

    /**
     * The machine, the programs, the settings.
     *
     * @return names and values, to be added to
     */
    public Map<String, String> environment() {
        return environment;
    }

    /**
     * What a reader should know.
     *
     * @return sentences, each once, to be added to
     */
    public Set<String> notes() {
        return notes;
    }

    /**
     * The lines.
     *
     * @return in the order in which they were first measured
     */
    public List<Line> lines() {
        return new ArrayList<>(lines.values());
    }

    /**
     * The distributions.
     *
     * @return in the order in which they were first recorded
     */
    public List<Latency> latencies() {
        return new ArrayList<>(latencies.values());
    }

    /**
     * Adds a line, or what another JVM measured of one that is there.
     *
     * @param line the line
     */
    public void add(Line line) {
        lines.merge(line.key(), line, Line::plus);
    }

    /**
     * Adds a distribution, or what another JVM recorded of one that is there.
     *
     * @param latency the distribution
     */
    public void add(Latency latency) {
        latencies.merge(latency.key(), latency, Latency::plus);
    }

    /**
     * Adds all that another JVM measured.
     *
     * @param more what it was
     */
    public void add(Results more) {
        more.environment.forEach(environment::putIfAbsent);
        notes.addAll(more.notes);
        more.lines.values().forEach(this::add);
        more.latencies.values().forEach(this::add);
    }

    /** Whether only seconds were measured: then no figure means anything, and every page says so. */
    public boolean isSmoke() {
        return environment.getOrDefault(EFFORT, "").startsWith("smoke");
    }
}
