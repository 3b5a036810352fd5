package org.millrace.cli;

import java.util.List;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/**
 * {@code millrace help}. Picocli's own help command is not used, because it declares an option -h, and all commands of
 * Millrace already inherit an option -h.
 */
@Command(name = "help", description = "Show the help of a command, as its --help does.")
final class HelpCommand implements Runnable {

    @Spec
    private CommandSpec spec;

    @Parameters(arity = "0..*", paramLabel = "COMMAND", description = "Which; of everything if there is none.")
    private List<String> names = List.of();

    @Override
    public void run() {
        CommandLine shown = spec.root().commandLine();
        for (String name : names) {
            CommandLine named = shown.getSubcommands().get(name);
            if (named == null) {
                throw new ParameterException(spec.commandLine(), UsageErrors.unknown(name, shown));
            }
            shown = named;
        }
        shown.usage(shown.getOut());
        shown.getOut().flush();
    }
}
