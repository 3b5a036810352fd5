package org.millrace.bench.report;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** All results of one or many JVMs. */
public final class Results {

    /** Name of the effort in the environment. */
    public static final String EFFORT = "effort";

    private final Map<String, String> environment = new LinkedHashMap<>();
    private final Set<String> notes = new LinkedHashSet<>();
    private final Map<String, Line> lines = new LinkedHashMap<>();
    private final Map<String, Latency> latencies = new LinkedHashMap<>();

    /** Creates empty results. */
    public Results() {}

    /**
     * Returns the machine, the programs and the settings.
     *
     * @return modifiable names and values
     */
    public Map<String, String> environment() {
        return environment;
    }

    /**
     * Returns notes for the reader.
     *
     * @return modifiable set of sentences
     */
    public Set<String> notes() {
        return notes;
    }

    /**
     * The lines.
     *
     * @return in the order of their first measurements
     */
    public List<Line> lines() {
        return new ArrayList<>(lines.values());
    }

    /**
     * The distributions.
     *
     * @return in the order of their first records
     */
    public List<Latency> latencies() {
        return new ArrayList<>(latencies.values());
    }

    /**
     * Adds a line, or the samples of another JVM to an existing line.
     *
     * @param line the line
     */
    public void add(Line line) {
        lines.merge(line.key(), line, Line::plus);
    }

    /**
     * Adds a distribution, or the recording of another JVM to an existing one.
     *
     * @param latency the distribution
     */
    public void add(Latency latency) {
        latencies.merge(latency.key(), latency, Latency::plus);
    }

    /**
     * Adds all results of another JVM.
     *
     * @param more the other results
     */
    public void add(Results more) {
        more.environment.forEach(environment::putIfAbsent);
        notes.addAll(more.notes);
        more.lines.values().forEach(this::add);
        more.latencies.values().forEach(this::add);
    }

    /** Returns whether the measurement lasted only seconds. Then no figure is meaningful, and every page states it. */
    public boolean isSmoke() {
        return environment.getOrDefault(EFFORT, "").startsWith("smoke");
    }
}
