import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Reads the output of one run of either side. */
final class Measurements {

    /**
     * Results of one size.
     *
     * @param bytes      operand of one rank
     * @param warmup     operations before the timed ones, 0 if the file does not contain it
     * @param iterations timed operations, 0 if the file does not contain it
     * @param outOfPlace nanoseconds of one operation
     * @param inPlace    nanoseconds of one operation
     * @param wrong      number of wrong elements
     */
    record Line(long bytes, int warmup, int iterations, double outOfPlace, double inPlace, long wrong) {
    }

    private static final String NUMBER = "([0-9.eE+-]+)";
    private static final String SAMPLE =
            "\\{\\s*\"time_ns\":\\s*" + NUMBER + "[^}]*?\"wrong\":\\s*" + NUMBER + "\\s*\\}";
    /** A row of the file that {@code millrace perf --json} writes: these fields, in this order. */
    private static final Pattern ROW = Pattern
            .compile("\\{\\s*\"size\":\\s*" + NUMBER + "[^{}]*?\"warmup\":\\s*" + NUMBER + ",\\s*\"iterations\":\\s*"
                    + NUMBER + ",\\s*\"out_of_place\":\\s*" + SAMPLE + ",\\s*\"in_place\":\\s*" + SAMPLE);
    private static final Pattern SIZE = Pattern.compile("\"size\":");

    private Measurements() {}

    static List<Line> ofMillrace(Path file) throws IOException {
        String text = Files.readString(file);
        List<Line> lines = new ArrayList<>();
        Matcher row = ROW.matcher(text);
        while (row.find()) {
            lines.add(new Line(Long.parseLong(row.group(1)), Integer.parseInt(row.group(2)),
                    Integer.parseInt(row.group(3)), Double.parseDouble(row.group(4)), Double.parseDouble(row.group(6)),
                    Long.parseLong(row.group(5)) + Long.parseLong(row.group(7))));
        }
        if (lines.isEmpty() || lines.size() != SIZE.matcher(text).results().count()) {
            throw new IOException(file + ": " + lines.size() + " rows are readable: this is not what this version's "
                    + "`millrace perf --json` writes");
        }
        return lines;
    }

    static List<Line> ofOpenMpi(Path file) throws IOException {
        List<Line> lines = new ArrayList<>();
        for (String line : Files.readAllLines(file)) {
            String[] fields = line.split("\t");
            if (fields.length != 4) {
                throw new IOException(file + ": not 'bytes, out-of-place ns, in-place ns, wrong elements': " + line);
            }
            lines.add(new Line(Long.parseLong(fields[0]), 0, 0, Double.parseDouble(fields[1]),
                    Double.parseDouble(fields[2]), Long.parseLong(fields[3])));
        }
        return lines;
    }
}
