package org.millrace.cli.inspect;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import org.millrace.cli.console.GlobalOptions;
import org.millrace.cli.console.Json;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParentCommand;
import picocli.CommandLine.Spec;

/** {@code millrace dump}. */
@Command(
        name = "dump",
        description = {"Write all that processes have written down as JSON, also of those that were killed or hang:"
                + " connections with their last steps, agents, communicators with their last operations, settings,"
                + " errors. The schema is in see-inside.md."})
public final class DumpCommand implements Callable<Integer> {

    @Spec
    private CommandSpec spec;
    @ParentCommand
    private GlobalOptions parent;
    @Mixin
    private Processes processes;
    @Option(names = "--out", paramLabel = "FILE", description = "Where to (default: standard output).")
    private @Nullable Path file;

    /** For picocli. */
    public DumpCommand() {}

    @Override
    public Integer call() throws IOException {
        String text = Json.write(DumpDocument.of(processes.require(parent.settings())));
        if (file == null) {
            spec.commandLine().getOut().print(text);
            spec.commandLine().getOut().flush();
        } else {
            Files.writeString(file, text);
        }
        return ExitCode.OK;
    }
}
