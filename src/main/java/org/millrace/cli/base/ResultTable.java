package org.millrace.cli.base;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A table of results. The table is printed line by line during the measurement. This object also keeps the lines as
 * values, for a JSON document. Callable from any thread.
 */
public final class ResultTable {

    /**
     * A column. {@code format} contains a width, as in {@code %12.2f}. {@code key} is the name of the column's values
     * in JSON.
     */
    public record Column(String title, String key, String format) {

        String head() {
            return String.format(format.replaceFirst("(\\.\\d+)?[a-z]$", "s"), title);
        }
    }

    private final PrintWriter out;
    private final List<Map<String, Object>> rows = new ArrayList<>();
    private List<Column> columns = List.of();

    public ResultTable(PrintWriter out) {
        this.out = out;
    }

    public synchronized void begin(Column... each) {
        columns = List.of(each);
        print(columns.stream().map(Column::head).toList());
    }

    public synchronized void row(Object... values) {
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

    /** Prints text between the lines of the table. {@link #rows} does not contain the text. */
    public synchronized void say(String text) {
        out.println(text);
        out.flush();
    }

    /** Returns the lines of the table, each with its values by key. */
    public synchronized List<Map<String, Object>> rows() {
        return List.copyOf(rows);
    }
}
