package org.millrace.cli.base;

import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** A command that only has further commands. Without one of these it is an error that lists them. */
public abstract class CommandGroup implements Runnable {

    @Spec
    protected CommandSpec spec;

    @Override
    public final void run() {
        throw new ParameterException(spec.commandLine(),
                "no command is given. Commands: " + String.join(", ", spec.subcommands().keySet()));
    }
}
