package org.millrace.cli;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import org.millrace.cli.base.Version;
import picocli.CommandLine.Command;
import picocli.CommandLine.Help;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Model.PositionalParamSpec;
import picocli.CommandLine.Model.UsageMessageSpec;
import picocli.CommandLine.Spec;

/** {@code millrace man}. Writes one manual page for all commands and options, in the macros of man(7). */
@Command(
        name = "man",
        description = {"Write this command line's page for man.",
                "To look at it: millrace man | man -l -. For everyone: millrace man > "
                        + "/usr/local/share/man/man1/millrace.1."})
final class ManCommand implements Runnable {

    @Spec
    private CommandSpec spec;

    @Override
    public void run() {
        spec.commandLine().getOut().print(page(spec.root()));
        spec.commandLine().getOut().flush();
    }

    static String page(CommandSpec root) {
        StringWriter page = new StringWriter();
        PrintWriter out = new PrintWriter(page);
        out.println(".TH MILLRACE 1 \"\" \"millrace " + escape(Version.millrace()) + "\" \"Millrace\"");
        out.println(".SH NAME\nmillrace \\- " + description(root.usageMessage()).getFirst());
        out.println(".SH SYNOPSIS\n" + synopsis(root));
        out.println(".SH OPTIONS\nBefore and behind every command:");
        root.options().forEach(option -> option(out, option));
        out.println(".SH COMMANDS");
        root.subcommands().values().forEach(each -> command(out, each.getCommandSpec(), root));
        out.println(".SH \"EXIT STATUS\"");
        root.usageMessage()
                .exitCodeList()
                .forEach((status, text) -> out.println(".TP\n" + status.strip() + "\n" + escape(text)));
        return page.toString();
    }

    private static void command(PrintWriter out, CommandSpec command, CommandSpec root) {
        if (command.usageMessage().hidden()) {
            return;
        }
        out.println(".SS \"" + escape(command.qualifiedName()) + "\"\n" + synopsis(command));
        description(command.usageMessage()).forEach(paragraph -> out.println(".PP\n" + paragraph));
        for (PositionalParamSpec parameter : command.positionalParameters()) {
            item(out, "\\fI" + escape(parameter.paramLabel()) + "\\fR", parameter.description());
        }
        command.options()
                .stream()
                .filter(option -> Arrays.stream(option.names()).noneMatch(root.optionsMap()::containsKey))
                .forEach(option -> option(out, option));
        command.subcommands().values().forEach(each -> command(out, each.getCommandSpec(), root));
    }

    private static void option(PrintWriter out, OptionSpec option) {
        if (!option.hidden()) {
            String names = Arrays.stream(option.names())
                    .map(name -> "\\fB" + escape(name) + "\\fR")
                    .collect(Collectors.joining(", "));
            item(out, names + (option.arity().max() == 0 ? "" : " \\fI" + escape(option.paramLabel()) + "\\fR"),
                    option.description());
        }
    }

    private static void item(PrintWriter out, String name, String[] description) {
        out.println(".TP\n" + name);
        Arrays.stream(description).forEach(line -> out.println(escape(String.format(line))));
    }

    private static String synopsis(CommandSpec command) {
        return escape(
                new Help(command, Help.defaultColorScheme(Help.Ansi.OFF)).synopsis(0).replaceAll("\\s+", " ").strip());
    }

    private static List<String> description(UsageMessageSpec usage) {
        return Arrays.stream(usage.description()).map(line -> escape(String.format(line))).toList();
    }

    /**
     * Escapes text for roff: backslashes, hyphens that stand for minus signs, and lines that roff would read as
     * requests.
     */
    private static String escape(String text) {
        String plain = text.replace("\\", "\\e").replace("-", "\\-").replace("\"", "\\(dq");
        return plain.startsWith(".") || plain.startsWith("'") ? "\\&" + plain : plain;
    }
}
