package org.millrace.cli.plugin;

import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code millrace plugin}. */
@Command(
        name = "plugin",
        description = "The plugin through which any NCCL program uses Millrace.",
        synopsisSubcommandLabel = "COMMAND",
        subcommands = InstallCommand.class)
public final class PluginCommand implements Runnable {

    @Spec
    private CommandSpec spec;

    /** For picocli. */
    public PluginCommand() {}

    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(),
                "what to do? There are: " + String.join(", ", spec.subcommands().keySet()));
    }
}
