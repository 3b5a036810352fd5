package org.millrace.bench.run;

import java.nio.file.Path;
import java.util.Iterator;
import java.util.List;
import java.util.stream.Stream;
import org.millrace.bench.measure.Effort;
import org.millrace.bench.suite.Suite;
import org.millrace.bench.suite.Suites;
import picocli.CommandLine;
import picocli.CommandLine.Option;

/** Options of a run. */
final class Options {

    @Option(names = "--quick", description = "about five minutes (default)")
    private boolean quick;

    @Option(names = "--full", description = "more JVMs, more samples, the rare combinations too: an hour")
    private boolean full;

    @Option(
            names = "--smoke",
            description = "seconds; shows that everything runs, the figures mean nothing; with "
                    + "--full, everything of that")
    private boolean smoke;

    @Option(names = "--forks", paramLabel = "N", description = "JVMs for each variant, no more and no fewer")
    private Integer forks;

    @Option(
            names = "--suite",
            paramLabel = "NAME",
            split = ",",
            converter = SuiteName.class,
            completionCandidates = SuiteNames.class,
            description = "only these of: ${COMPLETION-CANDIDATES}")
    private List<Suite> suites = Suites.ALL;

    @Option(
            names = "--out",
            paramLabel = "DIR",
            defaultValue = "millrace-bench-result",
            description = "where the result goes (default: ${DEFAULT-VALUE})")
    private Path output;

    @Option(
            names = "--baselines",
            paramLabel = "DIR",
            description = "compares with DIR/MACHINE-KIND.json if it is "
                    + "there (default: bench/baselines or baselines)")
    private Path baselines;

    @Option(names = "--save-baseline", description = "writes that file from this result")
    private boolean saveBaseline;

    /** Checks conditions that picocli cannot check. */
    void check(CommandLine command) {
        if (forks != null && forks < 1) {
            throw new CommandLine.ParameterException(command, "--forks is " + forks + "; it is 1 or more");
        }
        if (quick && (full || smoke)) {
            throw new CommandLine.ParameterException(command, "--quick is neither --full nor --smoke");
        }
    }

    Effort effort() {
        Effort effort = smoke ? Effort.SMOKE : full ? Effort.FULL : Effort.QUICK;
        Effort ofSet = smoke && full ? effort.ofFullSet() : effort;
        return forks == null ? ofSet : ofSet.withForks(forks);
    }

    boolean isSmoke() {
        return smoke;
    }

    /** Returns the name of the effort for readers of the result. */
    String effortName() {
        return smoke ? "smoke: seconds, to show that everything runs; no figure means anything"
                : full ? "full" : "quick";
    }

    List<Suite> suites() {
        return suites;
    }

    /** Returns the path of the result. */
    Path output() {
        return output;
    }

    /** Directory of baselines. */
    Path baselines() {
        if (baselines != null) {
            return baselines;
        }
        Path inRepository = Path.of("bench", "baselines");
        return inRepository.toFile().isDirectory() ? inRepository : Path.of("baselines");
    }

    /** Returns whether this result becomes the baseline of its machine kind. */
    boolean saveBaseline() {
        return saveBaseline;
    }

    /** A suite by its name. */
    static final class SuiteName implements CommandLine.ITypeConverter<Suite> {
        @Override
        public Suite convert(String name) {
            try {
                return Suites.named(name);
            } catch (IllegalArgumentException e) {
                throw new CommandLine.TypeConversionException(e.getMessage());
            }
        }
    }

    /** All suites' names. */
    static final class SuiteNames implements Iterable<String> {
        @Override
        public Iterator<String> iterator() {
            return names().iterator();
        }

        private static Stream<String> names() {
            return Suites.ALL.stream().map(Suite::name);
        }
    }
}
