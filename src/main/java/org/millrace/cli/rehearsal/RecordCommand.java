package org.millrace.cli.rehearsal;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.cli.base.Columns;
import org.millrace.cli.base.CommandGroup;
import org.millrace.cli.base.Converters;
import org.millrace.cli.base.FailureText;
import org.millrace.cli.base.Units;
import org.millrace.rehearsal.RecordedRun.Step;
import org.millrace.rehearsal.RecordedRun;
import org.millrace.rehearsal.RecordingReader;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code millrace record}. */
@Command(
        name = "record",
        description = "Read what was recorded with MILLRACE_RECORD=DIR: every step of every connection, and every"
                + " operation.",
        synopsisSubcommandLabel = "COMMAND",
        subcommands = {RecordCommand.Show.class, RecordCommand.Stat.class, RecordCommand.Export.class})
public final class RecordCommand extends CommandGroup {

    /** A command that reads a recording's directory and prints facts about it. */
    abstract static class Reading implements Callable<Integer> {

        @Spec
        private CommandSpec spec;

        @Parameters(paramLabel = "DIR", description = "What MILLRACE_RECORD was.")
        private Path directory;

        @Override
        public Integer call() {
            PrintWriter out = spec.commandLine().getOut();
            print(RecordingReader.read(directory), out);
            out.flush();
            return ExitCode.OK;
        }

        abstract void print(RecordedRun run, PrintWriter out);
    }

    @Command(name = "show", description = "Show the processes, the operations, or the steps.")
    static final class Show extends Reading {

        @Option(names = "--steps", description = "Show each step, by time.")
        private boolean steps;

        @Option(names = "--operations", description = "Show each operation, by time.")
        private boolean operations;

        @Override
        void print(RecordedRun run, PrintWriter out) {
            long begin = run.begin();
            if (steps) {
                for (Step each : run.steps()) {
                    out.printf(Locale.ROOT, "%13.3f us %9d B %s%n", (each.taken() - begin) / 1e3, each.size(),
                            each.connection());
                }
            }
            if (operations) {
                for (RecordedRun.Call each : run.calls()) {
                    out.printf(Locale.ROOT, "%13.3f us rank %d: %s of %d B%s%s%n", (each.enqueued() - begin) / 1e3,
                            each.group().rank(), each.kind(), each.bytes(),
                            each.peer() < 0 ? "" : ", peer " + each.peer(),
                            each.nanos() < 0 ? "" : ", " + Units.micros(each.nanos()) + " us");
                }
            }
            if (!steps && !operations) {
                Columns table = new Columns("PID", "<HOST", "<RANKS", "STEPS", "OPERATIONS", "<LINK");
                for (RecordedRun.Process each : run.processes()) {
                    List<RecordedRun.Call> own =
                            run.calls().stream().filter(call -> call.group().process().equals(each)).toList();
                    table.add(Long.toString(each.pid()), each.host(),
                            own.stream()
                                    .map(call -> call.group().rank() + " of " + call.group().size())
                                    .distinct()
                                    .sorted()
                                    .collect(Collectors.joining(", ")),
                            Long.toString(run.steps()
                                    .stream()
                                    .filter(step -> step.connection().process().equals(each))
                                    .count()),
                            Integer.toString(own.size()), each.link().orElse(""));
                }
                table.print(out);
            }
            tellWhatIsMissing(run, out);
        }
    }

    static void tellWhatIsMissing(RecordedRun run, PrintWriter out) {
        if (run.truncated()) {
            out.println("The oldest records were overwritten: MILLRACE_RECORD_BYTES has room for no more.");
        }
        if (run.lost() > 0) {
            out.println(Units.count(run.lost(), "record is", "records are")
                    + " missing: the file system was slower than what was to be recorded.");
        }
    }

    @Command(name = "stat", description = "Show how long operations took, and what steps waited for.")
    static final class Stat extends Reading {

        @Override
        void print(RecordedRun run, PrintWriter out) {
            Columns operations = new Columns("<OPERATION", "BYTES", "TIMES", "MIN US", "MEDIAN", "P90", "MAX");
            run.times()
                    .forEach((kind, times) -> operations.add(kind.name(), Long.toString(kind.bytes()),
                            Integer.toString(times.length), Units.micros(times[0]),
                            Units.micros(RecordedRun.median(times)), Units.micros(times[times.length * 9 / 10]),
                            Units.micros(times[times.length - 1])));
            operations.print(out);
            out.println();
            Columns connections = new Columns("<CONNECTION", "STEPS", "BYTES", "KERNEL WAIT US: MEDIAN", "SUM",
                    "WIRE WAIT US: MEDIAN", "SUM");
            Map<String, List<Step>> all = run.steps()
                    .stream()
                    .collect(Collectors.groupingBy(step -> step.connection().toString(), TreeMap::new,
                            Collectors.toList()));
            all.forEach((name, steps) -> {
                long[] kernel = steps.stream().mapToLong(Step::kernelWait).sorted().toArray();
                long[] wire = steps.stream().mapToLong(Step::wireWait).sorted().toArray();
                connections.add(name, Integer.toString(steps.size()),
                        Units.bytes(steps.stream().mapToLong(Step::size).sum()),
                        Units.micros(RecordedRun.median(kernel)), Units.micros(Arrays.stream(kernel).sum()),
                        Units.micros(RecordedRun.median(wire)), Units.micros(Arrays.stream(wire).sum()));
            });
            connections.print(out);
            tellWhatIsMissing(run, out);
        }
    }

    @Command(name = "export", description = "Write steps and operations for other programs.")
    static final class Export extends Reading {

        enum Format {
            CSV, CHROME
        }

        @Option(
                names = "--format",
                paramLabel = "FORMAT",
                defaultValue = "CSV",
                description = "csv, or chrome: open that in chrome://tracing or https://ui.perfetto.dev (default: csv).")
        private Format format;

        @Option(
                names = "--out",
                paramLabel = "FILE",
                converter = Converters.ResultFile.class,
                description = "Where to (default: standard output).")
        private @Nullable Path file;

        @Override
        void print(RecordedRun run, PrintWriter out) {
            if (file == null) {
                write(new RecordingExport(run, out));
                return;
            }
            try (PrintWriter to = new PrintWriter(Files.newBufferedWriter(file))) {
                write(new RecordingExport(run, to));
                if (to.checkError()) {
                    throw new IOException("not all of it was written");
                }
            } catch (IOException unwritten) {
                throw new MillraceException("--out " + file + ": " + FailureText.of(unwritten), unwritten);
            }
        }

        private void write(RecordingExport export) {
            if (format == Format.CSV) {
                export.csv();
            } else {
                export.chrome();
            }
        }
    }
}
