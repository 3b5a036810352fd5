package org.millrace.bench.run;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.millrace.bench.measure.Effort;
import org.millrace.bench.suite.Suite;
import org.millrace.bench.suite.Suites;

/**
 * What was asked for.
 *
 * @param effort       how long
 * @param suites       which
 * @param output       where the result goes
 * @param baselines    directory of baselines; null to compare with none
 * @param saveBaseline whether this result becomes the baseline of its machine kind
 */
record Options(Effort effort, List<Suite> suites, Path output, Path baselines, boolean saveBaseline) {

    // @formatter:off
    static final String USAGE = """
            java -jar millrace-bench.jar [OPTION...]
                measures, and writes result.json, report.html and tables.md
            java -jar millrace-bench.jar render RESULT.json DIR [PAGE.md...]
                writes the report again, and renews the tables of pages
            java -jar millrace-bench.jar disassemble SUITE VARIANT ID PACKAGE.CLASS::METHOD [FUNCTION]
                what C2 made of a line's Java and the C compiler of its C (x86-64, needs objdump)
            java -jar millrace-bench.jar jmh ARGUMENT...
                JMH's own command line, for the benchmarks that are JMH's

              --quick              about five minutes (default)
              --full               more JVMs, more samples, the rare combinations too: an hour
              --smoke              seconds; shows that everything runs, the figures mean nothing;
                                   with --full, everything of that
              --forks N            JVMs for each variant, no more and no fewer
              --suite NAME,...     only these of: %s
              --out DIR            where the result goes (default: millrace-bench-result)
              --baselines DIR      compares with DIR/MACHINE-KIND.json if it is there
                                   (default: bench/baselines or baselines)
              --save-baseline      writes that file from this result
              --help
            """.formatted(String.join(", ", Suites.ALL.stream().map(Suite::name).toList()));
    // @formatter:on

    /** Reads a command line; null if help was asked for. */
    static Options parse(List<String> arguments) {
        Effort effort = Effort.QUICK;
        List<Suite> suites = Suites.ALL;
        Path output = Path.of("millrace-bench-result");
        Path baselines = Path.of("bench", "baselines").toFile().isDirectory() ? Path.of("bench", "baselines")
                : Path.of("baselines");
        boolean save = false;
        int forks = 0;
        for (int i = 0; i < arguments.size(); i++) {
            String argument = arguments.get(i);
            switch (argument) {
                case "run" -> {}
                case "--quick" -> effort = Effort.QUICK;
                case "--full" -> effort = effort.equals(Effort.SMOKE) ? effort.ofFullSet() : Effort.FULL;
                case "--smoke" -> effort = effort.full() ? Effort.SMOKE.ofFullSet() : Effort.SMOKE;
                case "--forks" -> forks = Integer.parseInt(value(arguments, ++i));
                case "--save-baseline" -> save = true;
                case "--suite" -> suites = Arrays.stream(value(arguments, ++i).split(",")).map(Suites::named).toList();
                case "--out" -> output = Path.of(value(arguments, ++i));
                case "--baselines" -> baselines = Path.of(value(arguments, ++i));
                case "--help", "-h" -> {
                    return null;
                }
                default -> throw new IllegalArgumentException("unknown option " + argument + "; --help lists them");
            }
        }
        return new Options(forks > 0 ? effort.withForks(forks) : effort, suites, output, baselines, save);
    }

    private static String value(List<String> arguments, int at) {
        if (at >= arguments.size()) {
            throw new IllegalArgumentException(arguments.get(at - 1) + " needs a value; --help says which");
        }
        return arguments.get(at);
    }
}
