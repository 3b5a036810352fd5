package org.millrace.cli.perf;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.millrace.Route;
import org.millrace.cli.base.Json;
import org.millrace.cli.base.RunJson;
import org.millrace.config.Configuration;

/**
 * JSON document of a measurement: the content of the printed table, and the environment and settings of the run. Times
 * are in nanoseconds, sizes in bytes, and bandwidths in GB/s.
 */
final class PerfJson {

    private final PerfPlan plan;
    private final PerfResults results;

    PerfJson(PerfPlan plan, PerfResults results) {
        this.plan = plan;
        this.results = results;
    }

    String write(boolean processes, Configuration configuration, List<String> failures) {
        Map<String, Object> document = new LinkedHashMap<>();
        document.put("collective", plan.collective().label());
        document.put("ranks", plan.ranks());
        document.put("processes", processes);
        document.put("seed", plan.seed());
        document.put("checked", plan.check());
        document.put("environment", RunJson.environment());
        document.put("settings", RunJson.settings(configuration));
        document.put("devices", devices());
        document.put("results", results.rows().stream().map(this::row).toList());
        document.put("complete", results.rows().size() == plan.cases().size());
        document.put("wrong", plan.check() ? results.wrong() : null);
        document.put("average_busbw", results.averageBusBandwidth());
        document.put("failures", failures);
        return Json.write(document);
    }

    private List<Object> devices() {
        List<Object> devices = new ArrayList<>();
        for (int rank = 0; rank < plan.ranks(); rank++) {
            PerfEvent.Joined at = results.joined(rank);
            if (at != null) {
                Map<String, Object> device = new LinkedHashMap<>();
                device.put("rank", rank);
                device.put("pid", at.pid());
                device.put("host", at.host());
                device.put("device", at.device());
                devices.add(device);
            }
        }
        return devices;
    }

    private Map<String, Object> row(PerfResults.Row row) {
        PerfPlan.Case line = row.line();
        Map<String, Object> entry = new LinkedHashMap<>();
        entry.put("size", line.bytes());
        entry.put("count", line.count() / plan.parts());
        entry.put("type", line.type().label());
        entry.put("redop", plan.collective().reduces() ? line.reduction().toString() : "none");
        entry.put("warmup", line.warmup());
        entry.put("iterations", line.iterations());
        entry.put("out_of_place", sample(line, row.outOfPlace()));
        entry.put("in_place", row.inPlace().isMeasured() ? sample(line, row.inPlace()) : null);
        entry.put("route", row.route().map(PerfJson::route).orElse(null));
        return entry;
    }

    private static Map<String, Object> route(Route route) {
        Map<String, Object> entry = new LinkedHashMap<>();
        entry.put("algorithm", route.algorithm());
        entry.put("protocol", route.protocol());
        entry.put("mode", route.mode());
        entry.put("transports", route.transports());
        return entry;
    }

    private Map<String, Object> sample(PerfPlan.Case line, PerfEvent.CaseResult sample) {
        Map<String, Object> entry = new LinkedHashMap<>();
        entry.put("time_ns", sample.nanos());
        entry.put("algbw", PerfResults.algorithmBandwidth(line, sample));
        entry.put("busbw", results.busBandwidth(line, sample));
        entry.put("wrong", sample.isChecked() ? sample.wrong() : null);
        return entry;
    }
}
