package org.millrace.cli.perf;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.millrace.cli.base.Json;

/**
 * A run, read from a document that {@link PerfJson} wrote.
 *
 * @param rows results by size, type and reduction, in the order of the document
 */
record PerfRun(String name, Map<?, ?> document, Map<String, Map<?, ?>> rows) {

    /** Parses a document. Throws an exception for any other text. */
    static PerfRun of(String name, String text) {
        if (!(Json.read(text) instanceof Map<?, ?> document) || !(document.get("results") instanceof List<?> results)
                || !(document.get("collective") instanceof String)
                || !(document.get("environment") instanceof Map<?, ?>)
                || !results.stream().allMatch(Map.class::isInstance)) {
            throw new IllegalArgumentException("no results of 'millrace perf --json'");
        }
        Map<String, Map<?, ?>> rows = new LinkedHashMap<>();
        for (Object each : results) {
            Map<?, ?> row = (Map<?, ?>) each;
            rows.put(row.get("size") + " " + kind(row), row);
        }
        if (rows.isEmpty()) {
            throw new IllegalArgumentException("the run has no results"
                    + (document.get("failures") instanceof List<?> failures ? ": " + failures : ""));
        }
        return new PerfRun(name, document, rows);
    }

    /** Returns the type and the reduction of a result. */
    static String kind(Map<?, ?> row) {
        return row.get("type") + " " + row.get("redop");
    }

    /** Returns a text with the circumstances of the run and the routes of its data. */
    String about() {
        Object net = document.get("settings") instanceof Map<?, ?> settings
                && settings.get("MILLRACE_NET") instanceof Map<?, ?> entry ? entry.get("text") : "unknown";
        String routes = rows.values()
                .stream()
                .map(row -> row.get("route") instanceof Map<?, ?> route ? route(route) : "unknown")
                .distinct()
                .collect(Collectors.joining("; "));
        return document.get("collective") + ", " + document.get("ranks") + " ranks, "
                + (Boolean.TRUE.equals(document.get("processes")) ? "processes" : "threads") + ", network " + net
                + ", route " + routes;
    }

    private static String route(Map<?, ?> route) {
        String transports = route.get("transports") instanceof List<?> names
                ? names.stream().map(Object::toString).collect(Collectors.joining(" and "))
                : "";
        return route.get("algorithm") + " " + route.get("protocol") + " " + route.get("mode")
                + (transports.isEmpty() ? "" : " over " + transports);
    }

    /** Returns a text with the machine and the versions. */
    String environment() {
        Map<?, ?> environment = (Map<?, ?>) document.get("environment");
        return environment.get("host") + " (" + environment.get("processor") + ", " + environment.get("cores")
                + " cores, Java " + environment.get("java") + "), " + environment.get("time") + ", Millrace "
                + environment.get("millrace");
    }

    /** Returns the time of an operation in nanoseconds; NaN if it was not measured. */
    double nanos(String key, String place) {
        return rows.get(key).get(place) instanceof Map<?, ?> sample && sample.get("time_ns") instanceof Number time
                ? time.doubleValue()
                : Double.NaN;
    }
}
