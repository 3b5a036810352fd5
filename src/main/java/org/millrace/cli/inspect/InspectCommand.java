package org.millrace.cli.inspect;

import java.io.PrintWriter;
import org.millrace.cli.base.Subcommand;
import picocli.CommandLine.Mixin;

/** A command that inspects other processes by their traces. */
abstract class InspectCommand extends Subcommand {

    @Mixin
    Processes processes;

    PrintWriter out() {
        return spec.commandLine().getOut();
    }

    void print(String text) {
        out().print(text);
        out().flush();
    }
}
