package org.millrace.cli.inspect;

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
import org.millrace.cli.base.MillraceCommand;
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

/** Selection of the processes that a command inspects, and the directory of their traces. */
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

    /** Trace files of processes that were alive in an earlier call of {@link #living}. */
    private final Set<Path> lived = new HashSet<>();

    /** Reads the traces of the selected processes. Reports unreadable traces on standard error. */
    List<TracedProcess> read() {
        List<TracedProcess> found = readAll();
        return pids.isEmpty() ? found
                : found.stream().filter(process -> pids.contains(process.identity().pid())).toList();
    }

    /**
     * Returns the processes from {@link #read} that are alive, or were alive in an earlier call. If the user has named
     * processes, returns all processes from {@code read}.
     */
    List<TracedProcess> living(List<TracedProcess> read) {
        read.stream().filter(TracedProcess::alive).map(TracedProcess::file).forEach(lived::add);
        return pids.isEmpty() ? read.stream().filter(process -> lived.contains(process.file())).toList() : read;
    }

    List<Long> pids() {
        return pids;
    }

    /** Reads the traces of all processes, even if the user has named some. */
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

    /**
     * Returns the result of {@link #read}. Throws an exception if the user has named processes and none of them has a
     * trace.
     */
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

    /** Returns a message that no trace was found, with possible reasons. */
    String nothing() {
        return (pids.isEmpty() ? "no process of this user" : "none of the processes " + pids) + " has a trace in "
                + directory()
                + ": nothing of Millrace runs there, it was started with MILLRACE_TRACE=off, or with another"
                + " MILLRACE_TRACE_DIRECTORY (--directory)";
    }

    boolean isDirectoryNamed() {
        return directory != null;
    }

    Path directory() {
        Path chosen = directory;
        if (chosen == null) {
            chosen = Configuration.load(((MillraceCommand) spec.root().userObject()).settings())
                    .get(Settings.TRACE_DIRECTORY)
                    .orElseGet(SharedDirectory::usual);
        }
        if (!Files.isDirectory(chosen)) {
            throw new MillraceException(chosen + " is not a directory");
        }
        return chosen;
    }

    static String state(TracedProcess process) {
        return !process.alive() ? process.failed() ? "failed" : "dead"
                : process.failed() ? "failing"
                        : process.isSilent() ? quiet(process) : process.isCut() ? "cut" : "running";
    }

    /**
     * Returns the state of a process that no longer writes to its trace: "silent" if it is in another PID namespace,
     * otherwise "stopped". In another namespace, this program cannot always detect the end of a process.
     */
    private static String quiet(TracedProcess process) {
        return process.identity().isOfThisNamespace() ? "stopped" : "silent";
    }

    /**
     * Returns a process's rank according to its communicators. If they do not state the rank, returns the rank
     * according to the process's launcher. Returns an empty text if the rank is unknown.
     */
    static String rank(TracedProcess process, List<TracedLink> links) {
        return links.stream()
                .filter(link -> link.process() == process && link.rank() >= 0)
                .map(link -> Integer.toString(link.rank()))
                .distinct()
                .reduce((one, other) -> one.length() > 12 ? one : one + "," + other)
                .orElse(process.rank() >= 0 ? Integer.toString(process.rank()) : "");
    }
}
