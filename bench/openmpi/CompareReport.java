import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * The parts of compare.sh that are not written in shell. Run by the source launcher, JDK 22 or newer:
 *
 * <pre>
 *   java CompareReport.java plan FILE.json             what Open MPI's side is to run: a line per size,
 *                                                      bytes, warm-up operations, timed operations
 *   java CompareReport.java table DIR ROUNDS [JSON]    the table, from DIR/N.millrace.json, DIR/N.openmpi.tsv
 *                                                      and DIR/facts.tsv
 * </pre>
 */
public final class CompareReport {

    /** Size in bytes from which on Millrace must not be slower than Open MPI. */
    private static final long LARGE_BYTES = 1 << 20;

    private final Map<Long, SizeComparison> sizes = new LinkedHashMap<>();
    private final Map<String, String> facts = new LinkedHashMap<>();

    private CompareReport() {}

    public static void main(String[] arguments) throws IOException {
        switch (arguments[0]) {
            case "plan" -> Measurements.ofMillrace(Path.of(arguments[1]))
                    .forEach(line -> System.out.println(line.bytes() + " " + line.warmup() + " " + line.iterations()));
            case "table" -> {
                CompareReport report = new CompareReport();
                report.read(Path.of(arguments[1]), Integer.parseInt(arguments[2]));
                report.print();
                if (arguments.length > 3) {
                    Files.writeString(Path.of(arguments[3]), report.json());
                }
                System.exit(report.wrong() == 0 ? 0 : 1);
            }
            default -> throw new IllegalArgumentException("unknown command " + arguments[0] + ": plan or table");
        }
    }

    private void read(Path directory, int rounds) throws IOException {
        for (int round = 1; round <= rounds; round++) {
            for (Measurements.Line line : Measurements.ofMillrace(directory.resolve(round + ".millrace.json"))) {
                sizes.computeIfAbsent(line.bytes(), SizeComparison::new).addMillrace(line);
            }
            for (Measurements.Line line : Measurements.ofOpenMpi(directory.resolve(round + ".openmpi.tsv"))) {
                sizes.computeIfAbsent(line.bytes(), SizeComparison::new).addOpenMpi(line);
            }
        }
        for (SizeComparison size : sizes.values()) {
            size.requireRounds(rounds);
        }
        for (String fact : Files.readAllLines(directory.resolve("facts.tsv"))) {
            String[] parts = fact.split("\t", 2);
            facts.put(parts[0], parts[1].strip());
        }
        facts.put("rounds", String.valueOf(rounds));
    }

    private long wrong() {
        return sizes.values().stream().mapToLong(SizeComparison::wrong).sum();
    }

    private void print() {
        System.out.println("# all_reduce of float, sum, out of place; microseconds an operation of the slowest "
                + "rank: median over rounds [quartiles]");
        System.out.println("# ratio: Millrace's median over Open MPI's; below 1 Millrace is faster. In brackets: "
                + "the same in place");
        System.out.printf("#%11s  %34s  %34s  %16s%n", "size (B)", "Millrace (us)", "Open MPI (us)", "ratio");
        for (SizeComparison size : sizes.values()) {
            System.out.printf(Locale.ROOT, "%12d  %34s  %34s  %7.2f [%6.2f]%n", size.bytes(),
                    size.outOfPlace().millrace(), size.outOfPlace().openMpi(), size.outOfPlace().ratio(),
                    size.inPlace().ratio());
        }
        List<SizeComparison> large = sizes.values().stream().filter(size -> size.bytes() >= LARGE_BYTES).toList();
        if (!large.isEmpty()) {
            List<String> slower = large.stream()
                    .filter(size -> size.outOfPlace().ratio() > 1)
                    .map(size -> String.valueOf(size.bytes()))
                    .toList();
            System.out.printf(Locale.ROOT,
                    "# 1 MiB and above: ratio %.2f (geometric mean); Millrace is slower at " + "%s%n",
                    geometricMean(large), slower.isEmpty() ? "no size" : String.join(", ", slower));
        }
        System.out.println("# wrong elements: " + wrong());
        facts.forEach((name, value) -> System.out.println("# " + name + ": " + (value.isEmpty() ? "-" : value)));
    }

    private static double geometricMean(List<SizeComparison> of) {
        return Math.exp(of.stream().mapToDouble(size -> Math.log(size.outOfPlace().ratio())).average().orElseThrow());
    }

    private String json() {
        List<String> rows = new ArrayList<>();
        sizes.values().forEach(size -> rows.add("    " + size.json()));
        List<String> machine = new ArrayList<>();
        facts.forEach((name, value) -> machine.add("    " + quoted(name) + ": " + quoted(value)));
        return "{\n  \"facts\": {\n" + String.join(",\n", machine) + "\n  },\n  \"sizes\": [\n"
                + String.join(",\n", rows) + "\n  ],\n  \"wrong\": " + wrong() + "\n}\n";
    }

    private static String quoted(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"").replaceAll("\\p{Cntrl}", " ") + '"';
    }
}
