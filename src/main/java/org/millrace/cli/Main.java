package org.millrace.cli;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.nio.charset.Charset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.millrace.Millrace;
import org.millrace.MillraceException;
import org.millrace.config.ConfigurationException;
import org.millrace.config.NearestName;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.Help;
import picocli.CommandLine.MissingParameterException;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.RunLast;
import picocli.CommandLine;
import picocli.CommandLine.UnmatchedArgumentException;

/**
 * Entry point of {@code java -jar millrace.jar}. Exit status: 0 success, 1 a failure or wrong values, 2 wrong usage.
 */
public final class Main {

    private Main() {}

    /** Runs a command and ends the process. */
    public static void main(String[] arguments) {
        StandardOutput out = new StandardOutput(new FileOutputStream(FileDescriptor.out));
        PrintWriter err = new PrintWriter(System.err, true);
        AtomicBoolean over = new AtomicBoolean();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            if (!over.get() && StatusLine.isTerminal(StatusLine.ERR)) {
                System.err.println(); // ends the line that the terminal's ^C or an unfinished message has begun
            }
        }, "millrace-interrupted"));
        int status = run(out, err, arguments);
        over.set(true);
        System.exit(status);
    }

    /** Runs a command. Returns its exit status, which is a failure if its results could not be written. */
    static int run(StandardOutput out, PrintWriter err, String... arguments) {
        PrintWriter writer = out.writer();
        int status = run(writer, err, arguments);
        writer.flush();
        String complaint = out.complaint();
        if (complaint == null) {
            return status;
        }
        err.println("millrace: " + complaint);
        return Math.max(status, ExitCode.SOFTWARE);
    }

    /** {@return the exit status of a command} */
    public static int run(PrintWriter out, PrintWriter err, String... arguments) {
        return run(Map.of(), out, err, arguments);
    }

    /** Runs a command. {@code commands} contains further commands by their names. */
    public static int run(Map<String, ?> commands, PrintWriter out, PrintWriter err, String... arguments) {
        try {
            Millrace.requireNativeAccess(); // before commands and their options initialize the layouts of native memory
        } catch (MillraceException denied) {
            err.println(prefix() + denied.getMessage());
            return ExitCode.SOFTWARE;
        }
        MillraceCommand command = new MillraceCommand();
        CommandLine line = new CommandLine(command);
        commands.forEach(line::addSubcommand);
        line.getSubcommands().get("run").setStopAtPositional(true); // the words after the command of run belong to that
                                                                    // command
        return line.setOut(out)
                .setExpandAtFiles(false)
                .setUsageHelpAutoWidth(true)
                .setErr(err)
                .setCaseInsensitiveEnumValuesAllowed(true)
                .setParameterExceptionHandler(UsageErrors::report)
                .setExecutionExceptionHandler(
                        (failure, commandLine, parsed) -> failure(failure, commandLine, command.stackTraces))
                .setExecutionStrategy(parsed -> {
                    command.prepareLogging();
                    return new RunLast().execute(parsed);
                })
                .execute(arguments);
    }

    /** Returns the prefix of messages, red on a terminal unless {@code NO_COLOR} is set. */
    static String prefix() {
        Help.Ansi ansi = StatusLine.isTerminal(StatusLine.ERR) ? Help.Ansi.AUTO : Help.Ansi.OFF;
        return Help.defaultColorScheme(ansi).errorText("millrace:") + " ";
    }

    private static int failure(Exception failure, CommandLine commandLine, boolean stackTraces) {
        PrintWriter err = commandLine.getErr();
        err.println(prefix() + FailureText.of(failure));
        if (stackTraces) {
            failure.printStackTrace(err);
        } else if (FailureText.isUnexpected(failure)) {
            err.println("Run the same with --stacktrace to see where this happened.");
        }
        return failure instanceof ConfigurationException ? ExitCode.USAGE : ExitCode.SOFTWARE;
    }

    /**
     * A stream of results that records write failures. {@link PrintWriter} ignores such failures, so that a command
     * would end with status 0 on a full disk.
     */
    static final class StandardOutput extends OutputStream {

        private final OutputStream file;
        /** First write failure; null if none has occurred. */
        private volatile @Nullable IOException failure;

        /**
         * Creates a stream.
         *
         * @param file destination of all output, for example {@code new FileOutputStream(FileDescriptor.out)}
         */
        StandardOutput(OutputStream file) {
            this.file = file;
        }

        PrintWriter writer() {
            Charset charset = System.out.charset();
            return new PrintWriter(new OutputStreamWriter(this, charset), true);
        }

        @Override
        public void write(int b) throws IOException {
            write(new byte[] {(byte) b}, 0, 1);
        }

        @Override
        public void write(byte[] bytes, int offset, int length) throws IOException {
            try {
                file.write(bytes, offset, length);
            } catch (IOException thrown) {
                failure = failure == null ? thrown : failure;
                throw thrown;
            }
        }

        /**
         * Returns the write failure as text for the user.
         *
         * @return a sentence; null if all output was written, or if the reader closed the pipe early, as {@code head}
         *         does
         */
        @Nullable
        String complaint() {
            IOException thrown = failure;
            return thrown == null || "Broken pipe".equals(thrown.getMessage()) ? null
                    : "the results could not be written: " + thrown.getMessage();
        }
    }

    /** Messages for a command line that cannot be parsed. */
    static final class UsageErrors {

        private UsageErrors() {}

        /** Writes the message to standard error, and how to get help. Returns the exit status. */
        static int report(ParameterException failure, String[] arguments) {
            CommandLine commandLine = failure.getCommandLine();
            PrintWriter err = commandLine.getErr();
            err.println(Main.prefix() + text(failure, List.of(arguments)));
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
                    .replaceFirst("^Invalid value for option '(.*?)'(?: \\(.*?\\))?: ", "$1: ");
        }

        /** Returns the message for a word that is not one of a command's subcommands. */
        static String unknown(String name, CommandLine of) {
            Set<String> commands = of.getSubcommands().keySet();
            return commands.isEmpty()
                    ? "nothing more is expected behind '" + of.getCommandSpec().qualifiedName()
                            + "' and what it needs: '" + name + "'"
                    : "there is no '" + name + "'; "
                            + NearestName.hint(name, commands, "there are: " + String.join(", ", commands));
        }

        /**
         * Returns the first word that looks like an option and is not an option of the command; null if all options are
         * known. Picocli's own message may name a later word.
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
}
