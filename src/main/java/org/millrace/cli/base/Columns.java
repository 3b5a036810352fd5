package org.millrace.cli.base;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;

/**
 * A table. Each column is as wide as its widest cell. Empty columns are left out. If the table is wider than a given
 * width, its last columns are left out, too.
 */
public final class Columns {

    private final String[] names;
    private final boolean[] left;
    private final List<String[]> rows = new ArrayList<>();

    /** @param names names of the columns; a name that begins with {@code <} aligns its column to the left */
    public Columns(String... names) {
        this.names = names.clone();
        left = new boolean[names.length];
        for (int i = 0; i < names.length; i++) {
            left[i] = names[i].startsWith("<");
            this.names[i] = left[i] ? names[i].substring(1) : names[i];
        }
    }

    public void add(String... cells) {
        if (cells.length != names.length) {
            throw new IllegalArgumentException(cells.length + " cells for " + names.length + " columns");
        }
        rows.add(cells);
    }

    public void print(PrintWriter out) {
        lines(Integer.MAX_VALUE).forEach(out::println);
    }

    /** Returns the lines of the table. The first line has the columns' names. */
    public List<String> lines(int width) {
        int[] widths = new int[names.length];
        for (int i = 0; i < names.length; i++) {
            widths[i] = names[i].length();
            for (String[] row : rows) {
                widths[i] = Math.max(widths[i], row[i].length());
            }
        }
        List<Integer> shown = new ArrayList<>();
        int total = -1;
        for (int i = 0; i < names.length; i++) {
            int column = i;
            if (rows.isEmpty() || rows.stream().anyMatch(row -> !row[column].isEmpty())) {
                total += 1 + widths[i];
                if (total > width) {
                    break;
                }
                shown.add(i);
            }
        }
        List<String> lines = new ArrayList<>();
        lines.add(line(names, widths, shown));
        for (String[] row : rows) {
            lines.add(line(row, widths, shown));
        }
        return lines;
    }

    private String line(String[] cells, int[] widths, List<Integer> shown) {
        StringBuilder line = new StringBuilder();
        for (int i : shown) {
            String padding = " ".repeat(widths[i] - cells[i].length());
            line.append(line.isEmpty() ? "" : " ").append(left[i] ? cells[i] + padding : padding + cells[i]);
        }
        return line.toString().stripTrailing();
    }
}
