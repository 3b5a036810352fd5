package org.millrace.cli.inspect;

import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import org.millrace.cli.base.Converters;
import org.millrace.cli.base.Json;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.Option;

/** {@code millrace dump}. */
@Command(
        name = "dump",
        description = {"Write all that processes have written down as JSON, also of those that were killed or hang:"
                + " connections with their last steps, agents, communicators with their last operations, settings,"
                + " errors. The schema is in see-inside.md."})
public final class DumpCommand extends InspectCommand {

    @Option(
            names = "--out",
            paramLabel = "FILE",
            converter = Converters.ResultFile.class,
            description = "Where to (default: standard output).")
    private @Nullable Path file;

    @Override
    public Integer call() {
        String text = Json.write(DumpDocument.of(processes.require()));
        if (file == null) {
            print(text);
        } else {
            Json.save("--out", file, text);
        }
        return ExitCode.OK;
    }
}
