package org.millrace.cli;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.millrace.cli.base.FailureText;
import org.millrace.config.NearestName;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.MissingParameterException;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ParseResult;
import picocli.CommandLine.UnmatchedArgumentException;
import picocli.CommandLine;

/** Messages for a command line that cannot be parsed. */
final class UsageErrors {

    /** Finds the name of a setting in the description of an option. */
    private static final Pattern SETTING = Pattern.compile("-D (\\w+)=N");

    private UsageErrors() {}

    /** Writes the message, and the command that shows the help, to standard error. Returns the exit status. */
    static int report(ParameterException failure, String[] arguments) {
        CommandLine commandLine = failure.getCommandLine();
        PrintWriter err = commandLine.getErr();
        err.println(FailureText.prefix() + text(failure, List.of(arguments)));
        err.println("Try '" + commandLine.getCommandSpec().qualifiedName() + " --help'.");
        return ExitCode.USAGE;
    }

    private static String text(ParameterException failure, List<String> arguments) {
        CommandLine commandLine = failure.getCommandLine();
        String option = unknownOption(commandLine, arguments);
        if (option != null) {
            List<String> options = commandLine.getCommandSpec()
                    .options()
                    .stream()
                    .filter(each -> !each.hidden())
                    .flatMap(each -> Arrays.stream(each.names()))
                    .toList();
            return NearestName.of(option, options)
                    .map(near -> "there is no option " + option + "; did you mean " + near + "?")
                    .orElse("there is no option " + option);
        }
        if (failure instanceof UnmatchedArgumentException unmatched) {
            return unknown(unmatched.getUnmatched().getFirst(), commandLine);
        }
        if (failure instanceof MissingParameterException incomplete && incomplete.getMissing().size() == 1) {
            return failure.getMessage() + ": " + String.join(" ", incomplete.getMissing().getFirst().description());
        }
        return String.valueOf(failure.getMessage())
                .replaceFirst("^Invalid value for positional parameter at index \\d+ \\((.*?)\\): ", "$1: ")
                .replaceFirst("^Invalid value for option '(.*?)'(?: \\(.*?\\))?: ", "$1: ")
                .replaceFirst("expected one of \\[(.*)] \\(case-insensitive\\) but was ('.*')$",
                        "$2 is not usable; allowed: $1")
                .replaceFirst("('.*') is not an? (int|long)$", "$1 is not usable; allowed: a whole number")
                .replaceFirst("('.*') is not an? (double|float)$", "$1 is not usable; allowed: a number")
                .replaceFirst("^Value for option option '(.*?)' .* but was (.*)$", "$1 $2: expected NAME=VALUE");
    }

    /**
     * Returns a message in which the name of a setting is replaced by the option of the command line that sets it. The
     * description of the option contains the name of the setting, and {@link #SETTING} finds this name.
     */
    static String byOptions(String message, ParseResult parsed) {
        String text = message;
        for (ParseResult each = parsed; each != null; each = each.subcommand()) {
            for (OptionSpec option : each.matchedOptions()) {
                String description = String.join(" ", option.description());
                Matcher setting = SETTING.matcher(description.contains("hort for -D") ? description : "");
                while (setting.find()) {
                    text = text.replace(setting.group(1) + '=', option.longestName() + ' ');
                }
            }
        }
        // An option that sets two settings is refused once, with the text of the first setting.
        Set<String> refused = new HashSet<>();
        return text.lines().filter(line -> refused.add(line.split("; allowed: ")[0])).collect(Collectors.joining("\n"));
    }

    /** Returns the message for a word that is not one of a command's subcommands. */
    static String unknown(String name, CommandLine of) {
        Set<String> commands = of.getSubcommands().keySet();
        return commands.isEmpty()
                ? "nothing more is expected behind '" + of.getCommandSpec().qualifiedName() + "' and what it needs: '"
                        + name + "'"
                : "there is no '" + name + "'; "
                        + NearestName.hint(name, commands, "there are: " + String.join(", ", commands));
    }

    /**
     * Returns the first word that looks like an option and is not an option of the command; null if all options are
     * known. Picocli's own message is not used, because that message may name a later word.
     */
    private static @Nullable String unknownOption(CommandLine commandLine, List<String> arguments) {
        CommandSpec spec = commandLine.getCommandSpec();
        int begin = spec.parent() == null ? 0 : arguments.indexOf(spec.name()) + 1;
        List<String> words = new ArrayList<>(arguments.subList(begin, arguments.size()));
        int end = words.indexOf("--");
        return words.subList(0, end < 0 ? words.size() : end)
                .stream()
                .filter(word -> word.startsWith("--"))
                .map(word -> word.split("=", 2)[0])
                .filter(word -> spec.findOption(word) == null)
                .findFirst()
                .orElse(null);
    }
}
