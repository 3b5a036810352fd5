package org.millrace.cli.inspect;

import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.lang.ProcessBuilder.Redirect;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.cli.base.Converters;
import org.millrace.cli.base.ExitStatus;
import org.millrace.cli.base.Json;
import org.millrace.cli.base.Units;
import org.millrace.config.ValueTypes;
import org.millrace.trace.Hang;
import org.millrace.trace.StallWatch;
import org.millrace.trace.TraceReader;
import org.millrace.trace.TracedProcess;
import org.millrace.trace.TracedRank;
import org.millrace.trace.Verdict.Cause;
import org.millrace.trace.Verdict;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.Option;

/** {@code millrace why}. */
@Command(
        name = "why",
        description = {"Say in a sentence why nothing moves: which rank the others wait for, and for what.",
                "From what this user's processes on this host have written down (MILLRACE_TRACE), while they hang, or"
                        + " after they have died.",
                "Ends with status 3 if a stall was found, 0 if none was."})
public final class WhyCommand extends InspectCommand {

    private static final int STALL_FOUND = 3;

    static final class TimeOrNone extends Converters.OfValueType<Duration> {
        TimeOrNone() {
            super(new ValueTypes.DurationType(Duration.ZERO, Duration.ofHours(24)));
        }
    }

    @Option(
            names = "--json",
            description = "For programs: communicators as NCCL's RAS reports them, and verdicts (why-json.md).")
    private boolean json;

    @Option(
            names = "--after",
            paramLabel = "TIME",
            defaultValue = "1s",
            converter = TimeOrNone.class,
            description = "What moved within this time does not stand still (default: ${DEFAULT-VALUE}).")
    private Duration after;

    @Option(
            names = "--from",
            paramLabel = "PATH",
            arity = "1..*",
            description = "Traces of other hosts: files millrace-*.trace that were copied here, with their names, or"
                    + " directories of such.")
    private @Nullable List<Path> from;

    @Option(
            names = "--watch",
            paramLabel = "TIME",
            converter = TimeOrNone.class,
            description = "Look again after each TIME, and report each stall once, until Ctrl-C, or until the processes"
                    + " PID have ended.")
    private @Nullable Duration watch;

    @Option(
            names = "--exec",
            paramLabel = "COMMAND",
            description = "With --watch: run this command of the shell for each stall, with the stall as JSON on its"
                    + " standard input. The next look follows the command's end.")
    private @Nullable String exec;

    private final List<TracedProcess> all = new ArrayList<>();

    @Override
    public Integer call() throws IOException, InterruptedException {
        require(watch != null || exec == null, "--exec needs --watch");
        if (watch == null) {
            return look();
        }
        StallWatch.Reported reported = new StallWatch.Reported();
        CountDownLatch never = new CountDownLatch(1);
        int status = ExitCode.OK;
        checkKnown(verdicts());
        do {
            long begun = System.nanoTime();
            for (Verdict verdict : verdicts()) {
                if (isStall(verdict) && reported.add(verdict, begun)) {
                    status = STALL_FOUND;
                    print(json ? Json.write(WhyDocument.of(verdict)) : verdict.sentence() + ".\n");
                    execute(verdict);
                }
            }
            never.await(watch.toNanos(), TimeUnit.NANOSECONDS);
        } while (processes.pids().isEmpty()
                || all.stream().anyMatch(one -> one.alive() && processes.pids().contains(one.identity().pid())));
        return status;
    }

    /**
     * Runs the user's command of {@code --exec}, which reads the verdict on a stall from its standard input. If the
     * command fails, the failure is reported, and this process continues.
     */
    private void execute(Verdict verdict) throws IOException, InterruptedException {
        if (exec == null) {
            return;
        }
        Process process = new ProcessBuilder("/bin/sh", "-c", exec).redirectOutput(Redirect.INHERIT)
                .redirectError(Redirect.INHERIT)
                .start();
        try (OutputStream input = process.getOutputStream()) {
            input.write(Json.write(WhyDocument.of(verdict)).getBytes(StandardCharsets.UTF_8));
        } catch (IOException unread) {
            // An exception here is no failure of the user's command. The command may end, or close its standard input,
            // before it has read the verdict.
        }
        int status = process.waitFor();
        if (status != 0) {
            spec.commandLine().getErr().println("millrace: --exec " + exec + ": " + ExitStatus.text(status));
        }
    }

    private static boolean isStall(Verdict verdict) {
        return verdict.cause() != Cause.ENDED;
    }

    /** Reads all traces. Returns the verdicts on the selected processes. */
    private List<Verdict> verdicts() throws IOException {
        return Hang.verdicts(() -> {
            all.clear();
            all.addAll(read());
            return List.copyOf(all);
        }, after).stream().filter(verdict -> processes.pids().isEmpty() || verdict.concerns(processes.pids())).toList();
    }

    /** Throws an exception if the user has named processes, and none of them has a trace. */
    private void checkKnown(List<Verdict> verdicts) {
        if (!processes.pids().isEmpty() && verdicts.isEmpty()
                && all.stream().noneMatch(process -> processes.pids().contains(process.identity().pid()))) {
            throw new MillraceException(processes.nothing());
        }
    }

    private int look() throws IOException {
        long begun = System.nanoTime();
        List<Verdict> verdicts = verdicts();
        checkKnown(verdicts);
        PrintWriter out = out();
        List<Verdict> told = told(verdicts, !processes.pids().isEmpty());
        if (json) {
            out.print(Json.write(WhyDocument.of(communicators(), told, (System.nanoTime() - begun) / 1e9)));
        } else {
            if (told.stream().noneMatch(WhyCommand::isStall)) {
                long alive = all.stream().filter(TracedProcess::alive).count();
                out.println(all.isEmpty() ? processes.nothing()
                        : nothingStands(alive, all.size() - alive) + late(Hang.withoutCore(all, after)));
            }
            told.forEach(verdict -> out.println(verdict.sentence() + "."));
        }
        out.flush();
        return told.stream().anyMatch(WhyCommand::isStall) ? STALL_FOUND : ExitCode.OK;
    }

    /**
     * Returns the communicators with a living process. If the user has named processes, returns the communicators of
     * these processes.
     */
    private List<List<TracedRank>> communicators() {
        return Hang.communicators(all)
                .stream()
                .filter(ranks -> ranks.stream()
                        .map(TracedRank::process)
                        .anyMatch(one -> processes.pids().isEmpty() ? one.alive()
                                : processes.pids().contains(one.identity().pid())))
                .toList();
    }

    /**
     * Returns the verdicts to report. If any job stalls, returns only the verdicts on stalls, unless the user has named
     * processes.
     */
    static List<Verdict> told(List<Verdict> verdicts, boolean named) {
        List<Verdict> stalls = verdicts.stream().filter(WhyCommand::isStall).toList();
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
}
