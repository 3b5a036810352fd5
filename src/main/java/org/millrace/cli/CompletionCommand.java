package org.millrace.cli;

import picocli.AutoComplete;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** {@code millrace completion}. */
@Command(
        name = "completion",
        description = {"Write what bash and zsh need to complete this command line.",
                "For this shell: source <(millrace completion). For every one: millrace completion > "
                        + "~/.local/share/bash-completion/completions/millrace."})
final class CompletionCommand implements Runnable {

    @Spec
    private CommandSpec spec;

    @Override
    public void run() {
        spec.commandLine().getOut().print(script(spec.root()));
        spec.commandLine().getOut().flush();
    }

    static String script(CommandSpec root) {
        return AutoComplete.bash(root.name(), root.commandLine());
    }
}
