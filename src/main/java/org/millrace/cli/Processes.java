package org.millrace.cli;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.config.Configuration;
import org.millrace.config.Settings;
import org.millrace.file.SharedDirectory;
import org.millrace.trace.TraceReader;
import org.millrace.trace.TracedLink;
import org.millrace.trace.TracedProcess;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec.Target;
import picocli.CommandLine.Spec;

/** Which processes a command looks at, and where their traces are. */
final class Processes {

    @Spec(Target.MIXEE)
    private CommandSpec spec;

    @Parameters(paramLabel = "PID", description = "Processes to look at; all of this user's if none is named.")
    private List<Long> pids = new ArrayList<>();

    @Option(
            names = "--directory",
            paramLabel = "DIR",
            description = "Where the traces are: MILLRACE_TRACE_DIRECTORY of the processes, or /dev/shm if that is not"
                    + " set.")
    private @Nullable Path directory;

    /** Traces of processes that lived when they were looked at. */
    private final Set<Path> lived = new HashSet<>();

    /** Reads their traces; those that cannot be read are said on standard error. */
    List<TracedProcess> read() {
        List<TracedProcess> found = readAll();
        return pids.isEmpty() ? found
                : found.stream().filter(process -> pids.contains(process.identity().pid())).toList();
    }

    /** Of what was {@link #read}, those that live or did at an earlier look; all if some are named. */
    List<TracedProcess> living(List<TracedProcess> read) {
        read.stream().filter(TracedProcess::alive).map(TracedProcess::file).forEach(lived::add);
        return pids.isEmpty() ? read.stream().filter(process -> lived.contains(process.file())).toList() : read;
    }

    List<Long> pids() {
        return pids;
    }

    /** Reads all traces, whichever processes were named. */
    List<TracedProcess> readAll() {
        return readAll(directory());
    }

    List<TracedProcess> readAll(Path from) {
        try {
            return TraceReader.readAll(from,
                    (file, problem) -> spec.commandLine().getErr().println("millrace: " + problem.getMessage()));
        } catch (IOException e) {
            throw new UncheckedIOException("cannot look for traces in " + from, e);
        }
    }

    /** What {@link #read} finds; if processes are named, one of them must be there. */
    List<TracedProcess> readNamed() {
        return pids.isEmpty() ? read() : require();
    }

    List<TracedProcess> require() {
        List<TracedProcess> found = read();
        if (found.isEmpty()) {
            throw new MillraceException(nothing());
        }
        return found;
    }

    /** Says that nothing was found, and what may be the reason. */
    String nothing() {
        return (pids.isEmpty() ? "no process of this user" : "none of the processes " + pids) + " has a trace in "
                + directory()
                + ": nothing of Millrace runs there, it was started with MILLRACE_TRACE=off, or with another"
                + " MILLRACE_TRACE_DIRECTORY (--directory)";
    }

    private Path directory() {
        Path chosen = directory;
        if (chosen == null) {
            chosen = Configuration.load(((MillraceCommand) spec.root().userObject()).settings())
                    .get(Settings.TRACE_DIRECTORY)
                    .orElseGet(SharedDirectory::usual);
        }
        if (!Files.isDirectory(chosen)) {
            throw new MillraceException(chosen + " is no directory");
        }
        return chosen;
    }

    /** Whether a process is there, in a word. */
    static String state(TracedProcess process) {
        return !process.alive() ? process.failed() ? "failed" : "dead"
                : process.failed() ? "failing"
                        : process.isSilent() ? quiet(process) : process.isCut() ? "cut" : "running";
    }

    /** One of another namespace may have ended, and nobody here can tell. */
    private static String quiet(TracedProcess process) {
        return process.identity().isOfThisNamespace() ? "stopped" : "silent";
    }

    /** A process's rank: what its communicators say, or its launcher; empty if nobody does. */
    static String rank(TracedProcess process, List<TracedLink> links) {
        return links.stream()
                .filter(link -> link.process() == process && link.rank() >= 0)
                .map(link -> Integer.toString(link.rank()))
                .distinct()
                .reduce((one, other) -> one.length() > 12 ? one : one + "," + other)
                .orElse(process.rank() >= 0 ? Integer.toString(process.rank()) : "");
    }
}
