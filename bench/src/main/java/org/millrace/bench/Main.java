package org.millrace.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.millrace.bench.comparator.CLibrary;
import org.millrace.bench.comparator.CompiledLibrary;
import org.millrace.bench.report.Comparison;
import org.millrace.bench.report.JmhResult;
import org.millrace.bench.report.LibraryTables;
import org.millrace.bench.report.Tables;

/** The command line: JMH's, two commands that read its JSON, and one for the results of {@code bench/jvm.sh}. */
public final class Main {

    private static final String USAGE = """
            usage: java -jar millrace-bench.jar COMMAND
              jmh ARGUMENT...                      JMH's command line; -h lists its options, -l the benchmarks
              tables RESULT.json... [PAGE.md...]   prints JMH's results as tables, and renews the tables of pages
              compare A.json... -- B.json...       compares results of two builds (bench/compare.sh measures them)
              libraries LINES.tsv                  prints results of bench/jvm.sh as tables
            """;
    private static final String PREPEND = "-jvmArgsPrepend";

    private Main() {}

    /**
     * Runs a command.
     *
     * @param arguments command and its arguments
     * @throws IOException if a file cannot be read or written
     */
    public static void main(String[] arguments) throws IOException {
        List<String> rest = Arrays.asList(arguments).subList(Math.min(1, arguments.length), arguments.length);
        switch (arguments.length == 0 ? "" : arguments[0]) {
            case "jmh" -> jmh(rest);
            case "tables" -> tables(rest);
            case "compare" -> {
                int between = rest.indexOf("--");
                if (between < 1 || between == rest.size() - 1) {
                    wrong();
                }
                System.out.print(Comparison.of(JmhResult.read(paths(rest.subList(0, between))),
                        JmhResult.read(paths(rest.subList(between + 1, rest.size())))));
            }
            case "libraries" -> {
                if (rest.size() != 1) {
                    wrong();
                }
                System.out.print(new LibraryTables(Path.of(rest.get(0))));
            }
            default -> wrong();
        }
    }

    /** Compiles the comparators once, for every JVM of the run. */
    private static void jmh(List<String> given) throws IOException {
        List<String> arguments = new ArrayList<>(given);
        Path library = given.contains(PREPEND) ? null : CompiledLibrary.compile();
        if (library != null) {
            arguments.addAll(List.of(PREPEND, "-D" + CLibrary.PROPERTY + "=" + library));
        }
        org.openjdk.jmh.Main.main(arguments.toArray(String[]::new));
    }

    private static void tables(List<String> files) throws IOException {
        List<JmhResult> results = JmhResult.read(paths(files.stream().filter(file -> file.endsWith(".json")).toList()));
        if (results.isEmpty()) {
            wrong();
        }
        Tables tables = new Tables(results, Tables.thisMachine(results));
        System.out.print(tables.all());
        for (Path page : paths(files.stream().filter(file -> !file.endsWith(".json")).toList())) {
            Files.writeString(page, tables.renew(Files.readString(page)));
        }
    }

    private static List<Path> paths(List<String> files) {
        return files.stream().map(Path::of).toList();
    }

    private static void wrong() {
        System.err.print(USAGE);
        System.exit(2);
    }
}
