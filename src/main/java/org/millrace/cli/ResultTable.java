package org.millrace.cli;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A table for people, a line when it is measured, and the same lines for programs. Safe for any thread. */
final class ResultTable {

    /** {@code format} has a width, as in {@code %12.2f}; {@code key} is what JSON calls its values. */
    record Column(String title, String key, String format) {

        String head() {
            return String.format(format.replaceFirst("(\\.\\d+)?[a-z]$", "s"), title);
        }
    }

    private final PrintWriter out;
    private final List<Map<String, Object>> rows = new ArrayList<>();
    private List<Column> columns = List.of();

    ResultTable(PrintWriter out) {
        this.out = out;
    }

    /** Prints what stands above the columns. */
    synchronized void begin(Column... each) {
        columns = List.of(each);
        print(columns.stream().map(Column::head).toList());
    }

    synchronized void row(Object... values) {
        Map<String, Object> row = new LinkedHashMap<>();
        List<String> shown = new ArrayList<>();
        for (int i = 0; i < values.length; i++) {
            row.put(columns.get(i).key, values[i]);
            shown.add(String.format(columns.get(i).format, values[i]));
        }
        rows.add(row);
        print(shown);
    }

    private void print(List<String> cells) {
        out.println(String.join(" ", cells));
        out.flush();
    }

    /** Says something between the lines, to people alone. */
    synchronized void say(String text) {
        out.println(text);
        out.flush();
    }

    /** The lines for programs, in their order. */
    synchronized List<Map<String, Object>> rows() {
        return List.copyOf(rows);
    }
}
