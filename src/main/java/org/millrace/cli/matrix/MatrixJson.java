package org.millrace.cli.matrix;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.millrace.cli.console.Json;
import org.millrace.cli.console.Version;

/** The table for programs: every cell with what became of it. */
final class MatrixJson {

    private MatrixJson() {}

    static String write(MatrixPlan plan, List<CellResult> results, double seconds) {
        Map<String, Object> document = new LinkedHashMap<>();
        document.put("millrace", Version.millrace());
        document.put("seed", plan.seed());
        document.put("cores", Runtime.getRuntime().availableProcessors());
        document.put("seconds", seconds);
        document.put("ran", results.stream().filter(CellResult::hasRun).count());
        document.put("impossible", results.stream().filter(CellResult::isImpossible).count());
        document.put("wrong", results.stream().mapToLong(CellResult::wrong).sum());
        document.put("cells", results.stream().map(result -> cell(plan, result)).toList());
        return Json.write(document);
    }

    private static Map<String, Object> cell(MatrixPlan plan, CellResult result) {
        CellGroup group = result.group();
        Map<String, Object> entry = new LinkedHashMap<>();
        entry.put("collective", result.cell().operation().label());
        entry.put("algorithm", group.algorithm());
        entry.put("transport", group.variant().label());
        entry.put("mode", group.mode().name());
        entry.put("protocol", group.protocol());
        entry.put("ranks", group.ranks());
        entry.put("processes", group.processes());
        entry.put("ran", result.hasRun());
        entry.put("wrong", result.wrong());
        entry.put("impossible", result.isImpossible() ? result.reason() : null);
        entry.put("failure", result.failure().isEmpty() ? null : result.failure());
        entry.put("again", result.isGood() ? null : plan.rerunCommand(result));
        return entry;
    }
}
