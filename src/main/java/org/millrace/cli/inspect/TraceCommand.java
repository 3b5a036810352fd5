package org.millrace.cli.inspect;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import org.millrace.cli.console.GlobalOptions;
import org.millrace.cli.console.Json;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParentCommand;

/** {@code millrace trace}. */
@Command(
        name = "trace",
        description = {"Write the last steps of each connection, and the last operations, in Chrome's trace format:"
                + " open the file in chrome://tracing or https://ui.perfetto.dev."})
public final class TraceCommand implements Callable<Integer> {

    @ParentCommand
    private GlobalOptions parent;
    @Mixin
    private Processes processes;
    @Option(names = "--out", required = true, paramLabel = "FILE", description = "Where to.")
    private Path file;

    /** For picocli. */
    public TraceCommand() {}

    @Override
    public Integer call() throws IOException {
        Files.writeString(file, Json.write(ChromeTrace.of(processes.require(parent.settings()))));
        return ExitCode.OK;
    }
}
