package org.millrace.cli.why;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.millrace.cli.console.GlobalOptions;
import org.millrace.cli.console.Json;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.DurationType;
import org.millrace.config.Settings;
import org.millrace.file.SharedDirectory;
import org.millrace.trace.reader.TraceReader;
import org.millrace.trace.reader.TracedProcess;
import org.millrace.trace.why.Hang;
import org.millrace.trace.why.Verdict;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.ParentCommand;
import picocli.CommandLine.Spec;

/** {@code millrace why}. */
@Command(
        name = "why",
        description = {"Say in a sentence why nothing moves: which rank the others wait for, and for what.",
                "From what this user's processes on this host have written down (MILLRACE_TRACE), while they hang, or"
                        + " after they have died."})
public final class WhyCommand implements Callable<Integer> {

    private static final DurationType TIMES = new DurationType(Duration.ZERO, Duration.ofHours(24));

    @Spec
    private CommandSpec spec;

    @ParentCommand
    private GlobalOptions parent;

    @Parameters(paramLabel = "PID", arity = "0..*", description = "Only jobs that these processes are part of.")
    private List<Long> pids = List.of();

    @Option(names = "--json", description = "For programs: a list of verdicts.")
    private boolean json;

    @Option(
            names = "--after",
            paramLabel = "TIME",
            defaultValue = "1s",
            description = "What moved within this time does not stand still (default: ${DEFAULT-VALUE}).")
    private String after;

    @Option(
            names = "--from",
            paramLabel = "PATH",
            arity = "1..*",
            description = "Traces of other hosts: files millrace-*.trace that were copied here, with their names, or"
                    + " directories of such.")
    private @Nullable List<Path> from;

    /** For picocli. */
    public WhyCommand() {}

    @Override
    public Integer call() throws IOException {
        Duration quiet = quiet();
        List<TracedProcess> processes = new ArrayList<>(read(directory()));
        for (Path path : from == null ? List.<Path>of() : from) {
            processes.addAll(Files.isDirectory(path) ? read(path) : List.of(TraceReader.read(path)));
        }
        List<Verdict> verdicts = Hang.verdicts(processes, quiet)
                .stream()
                .filter(verdict -> pids.isEmpty() || verdict.concerns(pids))
                .toList();
        PrintWriter out = spec.commandLine().getOut();
        if (json) {
            out.print(Json.write(verdicts.stream().map(Verdict::json).toList()));
        } else if (verdicts.isEmpty()) {
            out.println(nothing(processes));
        } else {
            verdicts.forEach(verdict -> out.println(verdict.sentence() + "."));
        }
        out.flush();
        return ExitCode.OK;
    }

    private Duration quiet() {
        try {
            return TIMES.parse(after);
        } catch (IllegalArgumentException wrong) {
            throw new ParameterException(spec.commandLine(), "--after is a time with its unit, such as 500ms or 10s");
        }
    }

    private Path directory() {
        try {
            return Configuration.load(parent.settings())
                    .get(Settings.TRACE_DIRECTORY)
                    .orElseGet(SharedDirectory::usual);
        } catch (ConfigurationException wrong) {
            throw new ParameterException(spec.commandLine(), wrong.getMessage(), wrong);
        }
    }

    private List<TracedProcess> read(Path directory) throws IOException {
        return TraceReader.readAll(directory, (file, problem) -> spec.commandLine()
                .getErr()
                .println("millrace: " + file + ": " + problem.getMessage()));
    }

    /** What is there where nothing waits. */
    private String nothing(List<TracedProcess> processes) {
        Map<Boolean, Long> count =
                processes.stream().collect(Collectors.partitioningBy(TracedProcess::alive, Collectors.counting()));
        Map<String, Long> found = new LinkedHashMap<>();
        found.put("that run", count.get(true));
        found.put("that have ended", count.get(false));
        return processes.isEmpty()
                ? "No process of this user has written anything down in " + directory()
                        + " (with MILLRACE_TRACE=off none does)."
                : "Nothing stands still: looked at processes "
                        + found.entrySet()
                                .stream()
                                .map(each -> each.getKey() + ": " + each.getValue())
                                .collect(Collectors.joining(", "))
                        + ".";
    }
}
