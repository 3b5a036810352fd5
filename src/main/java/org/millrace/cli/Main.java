package org.millrace.cli;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.nio.charset.Charset;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.millrace.Millrace;
import org.millrace.MillraceException;
import org.millrace.cli.base.FailureText;
import org.millrace.cli.base.MillraceCommand;
import org.millrace.cli.base.StatusLine;
import org.millrace.cli.doctor.DoctorCommand;
import org.millrace.cli.gin.GinCommand;
import org.millrace.cli.inspect.DumpCommand;
import org.millrace.cli.inspect.MetricsCommand;
import org.millrace.cli.inspect.PsCommand;
import org.millrace.cli.inspect.TopCommand;
import org.millrace.cli.inspect.TraceCommand;
import org.millrace.cli.inspect.WhyCommand;
import org.millrace.cli.perf.CompareCommand;
import org.millrace.cli.perf.PerfCommand;
import org.millrace.cli.rehearsal.RecordCommand;
import org.millrace.cli.rehearsal.ReplayCommand;
import org.millrace.cli.rehearsal.SimulateCommand;
import org.millrace.cli.run.RunCommand;
import org.millrace.config.ConfigurationException;
import org.millrace.foreign.SystemError;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.ParseResult;
import picocli.CommandLine.RunLast;
import picocli.CommandLine;

/**
 * Entry point of {@code java -jar millrace.jar}. Exit status: 0 success, 1 a failure or wrong values, 2 wrong usage.
 */
public final class Main {

    /** Commands in the order of the help. */
    private static final List<Class<?>> COMMANDS = List.of(RunCommand.class, PerfCommand.class, CompareCommand.class,
            DoctorCommand.class, GinCommand.class, PsCommand.class, TopCommand.class, WhyCommand.class,
            DumpCommand.class, MetricsCommand.class, TraceCommand.class, RecordCommand.class, ReplayCommand.class,
            SimulateCommand.class, PluginCommand.class, CompletionCommand.class, ManCommand.class, HelpCommand.class);

    private Main() {}

    /** Runs a command and ends the process. */
    public static void main(String[] arguments) {
        StandardOutput out = new StandardOutput(new FileOutputStream(FileDescriptor.out));
        PrintWriter err = new PrintWriter(System.err, true);
        AtomicBoolean over = new AtomicBoolean();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            if (!over.get() && StatusLine.isTerminal(StatusLine.ERR)) {
                System.err.println(); // begins a new line after the terminal's ^C or an unfinished message
            }
        }, "millrace-interrupted"));
        int status = run(out, err, arguments);
        over.set(true);
        System.exit(status);
    }

    /**
     * Runs a command. Returns its exit status. If the command succeeded but its results could not be written, returns
     * the status of a failure.
     */
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

    /** Runs a command. {@code commands} contains further commands by name. */
    public static int run(Map<String, ?> commands, PrintWriter out, PrintWriter err, String... arguments) {
        try {
            // The check precedes the creation of the commands. Commands and their options initialize layouts of native
            // memory, which requires native access.
            Millrace.requireNativeAccess();
        } catch (MillraceException denied) {
            err.println(FailureText.prefix() + denied.getMessage());
            return ExitCode.SOFTWARE;
        }
        MillraceCommand command = new MillraceCommand();
        CommandLine line = new CommandLine(command);
        COMMANDS.forEach(line::addSubcommand);
        commands.forEach(line::addSubcommand);
        // All options after the user's command belong to the user's command, and not to `millrace run`.
        line.getSubcommands().get("run").setStopAtPositional(true);
        return line.setOut(out)
                .setExpandAtFiles(false)
                .setUsageHelpAutoWidth(true)
                .setErr(err)
                .setCaseInsensitiveEnumValuesAllowed(true)
                .setParameterExceptionHandler(UsageErrors::report)
                .setExecutionExceptionHandler(
                        (failure, commandLine, parsed) -> failure(failure, commandLine, parsed, command.stackTraces()))
                .setExecutionStrategy(parsed -> {
                    command.prepareLogging();
                    return new RunLast().execute(parsed);
                })
                .execute(arguments);
    }

    private static int failure(Exception failure, CommandLine commandLine, ParseResult parsed, boolean stackTraces) {
        PrintWriter err = commandLine.getErr();
        err.println(FailureText.prefix() + UsageErrors.byOptions(FailureText.of(failure), parsed));
        if (stackTraces) {
            failure.printStackTrace(err);
        } else if (FailureText.isUnexpected(failure)) {
            err.println("Run the same with --stacktrace to see where this happened.");
        }
        return failure instanceof ConfigurationException ? ExitCode.USAGE : ExitCode.SOFTWARE;
    }

    /**
     * A stream of results that records write failures. {@link PrintWriter} ignores such failures, so a command would
     * end with status 0 on a full disk.
     */
    static final class StandardOutput extends OutputStream {

        private final OutputStream file;
        /** First write failure; null if none has occurred. */
        private volatile @Nullable IOException failure;

        /** @param file destination of all output, for example {@code new FileOutputStream(FileDescriptor.out)} */
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
         * Returns a sentence about the write failure; null if all output was written, or if the reader closed the pipe
         * early, as {@code head} does.
         */
        @Nullable
        String complaint() {
            IOException thrown = failure;
            return thrown == null || SystemError.BROKEN_PIPE.isReasonOf(thrown) ? null
                    : "the results could not be written: " + thrown.getMessage();
        }
    }
}
