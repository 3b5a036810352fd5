package org.millrace.cli;

import java.io.PrintWriter;
import java.util.concurrent.Callable;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** A command that looks at processes from outside. */
abstract class InspectCommand implements Callable<Integer> {

    @Spec
    CommandSpec spec;
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
