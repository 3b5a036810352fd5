package org.millrace.cli;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.Option;

/** {@code millrace trace}. */
@Command(
        name = "trace",
        description = {"Write the last steps of each connection, and the last operations, in Chrome's trace format:"
                + " open the file in chrome://tracing or https://ui.perfetto.dev."})
final class TraceCommand extends InspectCommand {

    @Option(names = "--out", required = true, paramLabel = "FILE", description = "Where to.")
    private Path file;

    @Override
    public Integer call() throws IOException {
        Files.writeString(file, Json.write(ChromeTrace.of(processes.require())));
        return ExitCode.OK;
    }
}
