package org.millrace.cli.base;

import java.util.concurrent.Callable;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ParentCommand;
import picocli.CommandLine.Spec;

/** A command that follows {@code millrace} on the command line. */
public abstract class Subcommand implements Callable<Integer> {

    @Spec
    protected CommandSpec spec;

    @ParentCommand
    protected MillraceCommand parent;

    protected final void require(boolean condition, String otherwise) {
        if (!condition) {
            throw new ParameterException(spec.commandLine(), otherwise);
        }
    }
}
