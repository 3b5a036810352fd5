package org.millrace.bench.run;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.millrace.bench.comparator.CompiledLibrary;
import org.millrace.bench.report.Baseline;
import org.millrace.bench.report.HtmlReport;
import org.millrace.bench.report.Line;
import org.millrace.bench.report.MarkdownTables;
import org.millrace.bench.report.Movement;
import org.millrace.bench.report.ResultFile;
import org.millrace.bench.report.Results;
import org.millrace.bench.report.TextTable;
import org.millrace.bench.suite.Suite;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** Measures all requested suites and writes the report. */
@Command(
        name = "java -jar millrace-bench.jar",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        subcommands = {RenderCommand.class, DisassembleCommand.class},
        description = "Measures, and writes result.json, report.html and tables.md.",
        footer = "%njmh ARGUMENT... is JMH's own command line, for the benchmarks that are JMH's.")
final class RunCommand implements Callable<Integer> {

    private static final int FAILED = 1;
    private static final long QUICK_DEADLINE_SECONDS = 180;
    private static final long FULL_DEADLINE_SECONDS = 1800;

    @Mixin
    private Options options;

    @Spec
    private CommandSpec spec;

    private ChildProcess child;
    private final Results results = new Results();
    private final long begin = System.nanoTime();

    @Override
    public Integer call() throws IOException {
        options.check(spec.commandLine());
        if (options.saveBaseline() && options.isSmoke()) {
            throw new ParameterException(spec.commandLine(), "--save-baseline: the figures of --smoke mean nothing");
        }
        createOutput(options.output());
        Path scratch = Files.createTempDirectory("millrace-bench");
        try {
            Path library = CompiledLibrary.compile(scratch);
            long deadlineSeconds = options.effort().full() ? FULL_DEADLINE_SECONDS : QUICK_DEADLINE_SECONDS;
            child = new ChildProcess(library, scratch, deadlineSeconds);
            results.environment().put(Results.EFFORT, options.effortName());
            results.environment().putAll(Environment.describe());
            if (Environment.isBusy()) {
                results.notes()
                        .add("other programs were running when this began (load " + Environment.load() + "): "
                                + "do not believe what two threads measured, nor wide intervals");
            }
            if (library == null) {
                results.notes().add("there is no C compiler here: no line has a ratio");
            }
            options.suites().forEach(this::measure);
            return report();
        } finally {
            delete(scratch);
        }
    }

    /** Creates the output before any measurement, so that an error is reported now and not in an hour. */
    static void createOutput(Path output) throws IOException {
        try {
            Files.createDirectories(output);
            Files.delete(Files.createTempFile(output, "try", ""));
        } catch (IOException e) {
            throw new IOException("cannot write into " + output + ": " + e, e);
        }
    }

    private void measure(Suite suite) {
        List<String> variants = suite.variants(options.effort().full());
        if (variants.isEmpty()) {
            results.notes().add(suite.title() + ": not measured, this machine lacks what it needs");
        }
        for (String variant : variants) {
            System.out.printf("%s: %s%n", suite.name(), variant);
            try {
                for (int fork = 0; fork < options.effort().forks(); fork++) {
                    results.add(child.run(suite.name(), variant, options.effort(), List.of()));
                }
                repeatWhatScatters(suite, variant);
            } catch (IOException e) {
                results.notes().add(suite.name() + ":" + variant + " failed: " + e.getMessage());
            }
            TextTable.printLatencies(results.latencies()
                    .stream()
                    .filter(latency -> latency.suite().equals(suite.name()) && latency.variant().equals(variant))
                    .toList(), System.out);
            TextTable.print(results.lines()
                    .stream()
                    .filter(line -> line.suite().equals(suite.name()) && line.variant().equals(variant))
                    .toList(), System.out);
        }
    }

    /**
     * Repeats measurements in more JVMs. A shared machine places two threads sometimes on close cores and sometimes on
     * distant ones. More JVMs show both cases, and the usual one.
     */
    private void repeatWhatScatters(Suite suite, String variant) throws IOException {
        for (int fork = options.effort().forks(); fork < options.effort().maxForks(); fork++) {
            List<String> unsettled = results.lines()
                    .stream()
                    .filter(line -> line.suite().equals(suite.name()) && line.variant().equals(variant)
                            && line.unsettled())
                    .map(Line::id)
                    .toList();
            if (unsettled.isEmpty()) {
                return;
            }
            if (System.nanoTime() - begin > TimeUnit.SECONDS.toNanos(options.effort().seconds())) {
                results.notes()
                        .add("after " + options.effort().seconds() + " s nothing is repeated any more: "
                                + "lines with wide intervals, or two placements, may need --full");
                return;
            }
            System.out.printf("%s: %s, once more for %d lines%n", suite.name(), variant, unsettled.size());
            results.add(child.run(suite.name(), variant, options.effort().alone(), unsettled));
        }
    }

    private int report() throws IOException {
        results.environment().put("load after", Environment.load());
        Path baseline = options.baselines().resolve(Environment.kind() + ".json");
        List<Movement> movements = Files.exists(baseline) ? Baseline.read(baseline).movements(results) : null;
        ResultFile.write(results, options.output().resolve("result.json"));
        HtmlReport.write(results, movements, options.output().resolve("report.html"));
        Files.writeString(options.output().resolve("tables.md"), MarkdownTables.all(results));
        results.notes().forEach(note -> System.out.println("note: " + note));
        System.out.println(movements == null ? "no baseline " + baseline
                : movements.isEmpty() ? "nothing moved beyond the noise since " + baseline
                        : "moved since " + baseline + ":");
        if (movements != null) {
            movements.forEach(movement -> System.out.println("  " + movement));
        }
        if (options.saveBaseline()) {
            Baseline.of(results).write(results.environment(), baseline);
            System.out.println("baseline written: " + baseline);
        }
        System.out.println(options.output().resolve("report.html"));
        return results.lines().isEmpty() && results.latencies().isEmpty() ? FAILED : 0;
    }

    private static void delete(Path directory) throws IOException {
        try (Stream<Path> files = Files.walk(directory)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.deleteIfExists(file);
            }
        }
    }
}
