package org.millrace.cli.base;

import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/**
 * A command that consists of subcommands. A call without a subcommand fails, and the message contains the names of the
 * subcommands.
 */
public abstract class CommandGroup implements Runnable {

    @Spec
    protected CommandSpec spec;

    @Override
    public final void run() {
        throw new ParameterException(spec.commandLine(),
                "no command is given. Commands: " + String.join(", ", spec.subcommands().keySet()));
    }
}
