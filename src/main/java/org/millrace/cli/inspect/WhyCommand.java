package org.millrace.cli.inspect;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.cli.base.Json;
import org.millrace.cli.base.Units;
import org.millrace.config.ValueTypes;
import org.millrace.trace.Hang;
import org.millrace.trace.TraceReader;
import org.millrace.trace.TracedProcess;
import org.millrace.trace.Verdict.Cause;
import org.millrace.trace.Verdict;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;

/** {@code millrace why}. */
@Command(
        name = "why",
        description = {"Say in a sentence why nothing moves: which rank the others wait for, and for what.",
                "From what this user's processes on this host have written down (MILLRACE_TRACE), while they hang, or"
                        + " after they have died."})
public final class WhyCommand extends InspectCommand {

    private static final ValueTypes.DurationType TIMES =
            new ValueTypes.DurationType(Duration.ZERO, Duration.ofHours(24));

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

    @Override
    public Integer call() throws IOException {
        Duration quiet = quiet();
        List<TracedProcess> all = new ArrayList<>();
        List<Verdict> verdicts = Hang.verdicts(() -> {
            all.clear();
            all.addAll(read());
            return List.copyOf(all);
        }, quiet).stream().filter(verdict -> processes.pids().isEmpty() || verdict.concerns(processes.pids())).toList();
        if (!processes.pids().isEmpty() && verdicts.isEmpty()
                && all.stream().noneMatch(process -> processes.pids().contains(process.identity().pid()))) {
            throw new MillraceException(processes.nothing());
        }
        PrintWriter out = out();
        List<Verdict> told = told(verdicts, !processes.pids().isEmpty());
        if (json) {
            out.print(Json.write(told.stream().map(Verdict::json).toList()));
        } else {
            if (told.stream().allMatch(verdict -> verdict.cause() == Cause.ENDED)) {
                long alive = all.stream().filter(TracedProcess::alive).count();
                out.println(all.isEmpty() ? processes.nothing()
                        : nothingStands(alive, all.size() - alive) + late(Hang.withoutCore(all, quiet)));
            }
            told.forEach(verdict -> out.println(verdict.sentence() + "."));
        }
        out.flush();
        return ExitCode.OK;
    }

    /**
     * Returns the verdicts to report. If a job stalls, verdicts on other jobs that have ended are omitted, unless the
     * user has named processes.
     */
    static List<Verdict> told(List<Verdict> verdicts, boolean named) {
        List<Verdict> stalls = verdicts.stream().filter(verdict -> verdict.cause() != Cause.ENDED).toList();
        return named || stalls.isEmpty() ? verdicts : stalls;
    }

    static String nothingStands(long alive, long ended) {
        return "No operation is stalled in " + Units.count(alive, "process that runs", "processes that run") + " and "
                + Units.count(ended, "that has", "that have") + " ended.";
    }

    private static String late(long processes) {
        return processes == 0 ? ""
                : " But " + processes + (processes == 1 ? " has" : " have")
                        + " just had no core for a while, and the ranks that they wait for are not known: run the "
                        + "command again.";
    }

    private List<TracedProcess> read() throws IOException {
        List<TracedProcess> all = new ArrayList<>(processes.readAll());
        for (Path path : from == null ? List.<Path>of() : from) {
            all.addAll(Files.isDirectory(path) ? processes.readAll(path) : List.of(TraceReader.read(path)));
        }
        return all;
    }

    private Duration quiet() {
        try {
            return TIMES.parse(after);
        } catch (IllegalArgumentException wrong) {
            throw new ParameterException(spec.commandLine(), "--after is a time with its unit, such as 500ms or 10s");
        }
    }
}
