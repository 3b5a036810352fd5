package org.millrace.cli;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * Prints cells. Rows are collectives, algorithms, transports and modes. Columns are protocols, ranks, and threads or
 * processes.
 */
final class MatrixTable {

    private static final String NOT_ASKED = "";
    private static final String OK = "ok";
    private static final String FAILED = "FAIL";
    /** Maximum number of cells to list one by one if they failed for the same reason. */
    private static final int TOLD = 8;

    private final PrintWriter out;
    private final MatrixPlan plan;
    private final List<CellResult> results;
    private final List<String> reasons = new ArrayList<>();
    private final Map<String, Map<String, String>> rows = new LinkedHashMap<>();

    MatrixTable(PrintWriter out, MatrixPlan plan, List<CellResult> results) {
        this.out = out;
        this.plan = plan;
        this.results = results;
    }

    private static String row(CellResult result) {
        CellGroup group = result.group();
        return String.format("%-14s %-13s %-19s %-6s", result.cell().operation().label(), group.algorithm(),
                group.variant(), group.mode());
    }

    private static String column(CellGroup group, String protocol) {
        return protocol + " " + group.ranks() + (group.processes() ? "p" : "t");
    }

    void print(String how) {
        out.println("# " + how);
        out.println("# columns: protocol, number of ranks, t: threads of one process, p: processes. ok: ran as asked, "
                + "no element wrong");
        List<String> columns = columns();
        results.forEach(result -> rows.computeIfAbsent(row(result), _ -> new LinkedHashMap<>())
                .put(column(result.group(), result.group().protocol()), text(result)));
        int width = columns.stream().mapToInt(String::length).max().orElse(0) + 1;
        StringBuilder head =
                new StringBuilder(String.format("%-55s", "# collective   algo          transport           mode"));
        columns.forEach(column -> head.append(String.format("%" + width + "s", column)));
        out.println(head);
        for (CellResult first : firstOfRows()) {
            Map<String, String> cells = rows.get(row(first));
            if (Set.copyOf(cells.values()).size() > 1 || !first.isImpossible()) {
                StringBuilder line = new StringBuilder(String.format("%-49s", row(first)));
                columns.forEach(
                        column -> line.append(String.format("%" + width + "s", cells.getOrDefault(column, NOT_ASKED))));
                out.println(line.toString().stripTrailing());
            }
        }
        printImpossibleRows();
        for (int i = 0; i < reasons.size(); i++) {
            out.println("# " + letter(i) + ": " + reasons.get(i));
        }
        printFailures();
        out.println("# " + totals());
        out.flush();
    }

    /** Prints every wrong cell. If many cells failed for one reason, such as a timeout, prints only a few cells. */
    private void printFailures() {
        Map<String, Integer> told = new LinkedHashMap<>();
        for (CellResult result : results) {
            if (!result.isGood() && (result.wrong() > 0 || told.merge(result.failure(), 1, Integer::sum) <= TOLD)) {
                printFailure(result);
            }
        }
        told.forEach((why, cells) -> {
            if (cells > TOLD) {
                out.println("# " + FAILED + " " + (cells - TOLD) + " more cells: " + why);
            }
        });
    }

    /** Prints the failure, and the command that repeats it. */
    private void printFailure(CellResult result) {
        String what = result.wrong() == 0 ? FAILED : result.wrong() + " wrong";
        String cell =
                row(result).replaceAll(" +", " ") + " " + result.group().protocol() + ", " + result.group().where();
        out.println("# " + what + " " + cell + (result.failure().isEmpty() ? "" : ": " + result.failure()));
        out.println("#   again: " + plan.rerunCommand(result));
    }

    /** Returns the first result of each row, sorted by collective. */
    private List<CellResult> firstOfRows() {
        Map<String, CellResult> first = new LinkedHashMap<>();
        results.stream()
                .sorted(Comparator.comparing(result -> result.cell().operation()))
                .forEach(result -> first.putIfAbsent(row(result), result));
        return List.copyOf(first.values());
    }

    /**
     * Prints the rows whose cells are all impossible for one reason. Rows that differ only in collective or transport
     * share a line.
     */
    private void printImpossibleRows() {
        Map<String, Set<String>> collectives = new LinkedHashMap<>();
        for (CellResult first : firstOfRows()) {
            CellGroup group = first.group();
            String letters = String.join("", Set.copyOf(rows.get(row(first)).values()));
            if (first.isImpossible() && letters.equals(text(first))) {
                String all = firstOfRows().stream()
                        .filter(other -> other.isImpossible() && other.cell().operation() == first.cell().operation()
                                && other.group().algorithm().equals(group.algorithm())
                                && other.group().mode() == group.mode()
                                && Set.copyOf(rows.get(row(other)).values()).equals(Set.of(letters)))
                        .map(other -> other.group().variant().label())
                        .collect(Collectors.joining(", "));
                collectives
                        .computeIfAbsent(letters + ": " + group.algorithm() + ", " + group.mode() + ", over " + all,
                                _ -> new LinkedHashSet<>())
                        .add(first.cell().operation().label());
            }
        }
        collectives.forEach((what, names) -> out.println("# every cell is " + what + ": " + String.join(", ", names)));
    }

    private List<String> columns() {
        List<String> columns = new ArrayList<>();
        for (String protocol : MatrixPlan.PROTOCOLS) {
            results.stream()
                    .map(CellResult::group)
                    .filter(group -> group.protocol().equals(protocol))
                    .map(group -> column(group, protocol))
                    .distinct()
                    .forEach(columns::add);
        }
        return columns;
    }

    private String text(CellResult result) {
        if (result.wrong() > 0) {
            return String.valueOf(result.wrong());
        }
        if (!result.failure().isEmpty()) {
            return FAILED;
        }
        if (result.hasRun()) {
            return OK;
        }
        if (!reasons.contains(result.reason())) {
            reasons.add(result.reason());
        }
        return letter(reasons.indexOf(result.reason()));
    }

    private static String letter(int number) {
        return number < 26 ? String.valueOf((char) ('a' + number)) : letter(number / 26 - 1) + letter(number % 26);
    }

    private String totals() {
        long ran = results.stream().filter(CellResult::hasRun).count();
        long impossible = results.stream().filter(CellResult::isImpossible).count();
        long wrong = results.stream().mapToLong(CellResult::wrong).sum();
        long failed = results.size() - ran - impossible;
        return "cells: " + ran + " ran, " + wrong + " wrong, " + impossible + " impossible (" + reasons.size()
                + " reasons)" + (failed == 0 ? "" : ", " + failed + " failed");
    }
}
