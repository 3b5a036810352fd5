package org.millrace.bench.report;

import com.google.gson.Gson;
import com.google.gson.JsonParseException;
import java.io.IOException;
import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import java.util.TreeMap;

/**
 * A benchmark's result with one set of parameters, as in JMH's JSON (-rf json).
 *
 * @param benchmark        class and method
 * @param params           parameters by name, null if there are none
 * @param vmName           name of the JVM
 * @param vmVersion        its version
 * @param primaryMetric    times of an operation
 * @param secondaryMetrics other values of an iteration by name, null if there are none
 */
public record JmhResult(String benchmark, Map<String, String> params, String vmName, String vmVersion,
        Metric primaryMetric, Map<String, Metric> secondaryMetrics) {

    /**
     * Values of a metric.
     *
     * @param rawData one array for each JVM, with one value for each iteration
     */
    public record Metric(double[][] rawData) {

        private Metric and(Metric later) {
            return new Metric(
                    Stream.concat(Arrays.stream(rawData), Arrays.stream(later.rawData)).toArray(double[][]::new));
        }

        /** {@return the median of all iterations} */
        public double median() {
            return Statistics.median(Arrays.stream(rawData).flatMapToDouble(Arrays::stream).toArray());
        }
    }

    /**
     * Reads results.
     *
     * @param files files that JMH wrote
     * @return the results, in the order of the files
     * @throws IOException if a file cannot be read, or is no such file
     */
    public static List<JmhResult> read(List<Path> files) throws IOException {
        List<JmhResult> results = new ArrayList<>();
        for (Path file : files) {
            try (Reader reader = Files.newBufferedReader(file)) {
                results.addAll(List.of(new Gson().fromJson(reader, JmhResult[].class)));
            } catch (JsonParseException | NullPointerException e) {
                throw new IOException(file + " is no JSON of JMH: " + e.getMessage(), e);
            }
        }
        return results;
    }

    /**
     * Returns the JVMs of this result and of a later one.
     *
     * @param later result of the same benchmark with the same parameters
     * @return both together
     */
    public JmhResult and(JmhResult later) {
        Map<String, Metric> secondary = new TreeMap<>();
        if (secondaryMetrics != null) {
            secondaryMetrics
                    .forEach((name, metric) -> secondary.put(name, metric.and(later.secondaryMetrics.get(name))));
        }
        return new JmhResult(benchmark, params, vmName, vmVersion, primaryMetric.and(later.primaryMetric), secondary);
    }

    /** {@return class without package, and method} */
    public String name() {
        int method = benchmark.lastIndexOf('.');
        return benchmark.substring(benchmark.lastIndexOf('.', method - 1) + 1);
    }

    /**
     * Returns a parameter.
     *
     * @param name its name
     * @return its value
     */
    public String param(String name) {
        return params.get(name);
    }

    /** {@return name and parameters, which identify the same measurement in another result} */
    public String key() {
        return params == null ? name() : name() + " " + params;
    }
}
