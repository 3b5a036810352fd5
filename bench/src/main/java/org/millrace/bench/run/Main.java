package org.millrace.bench.run;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.millrace.bench.FenceBenchmark;
import org.millrace.bench.ring.RingSideProcess;
import org.millrace.bench.suite.Cores;
import picocli.CommandLine;

/** The command line. */
public final class Main {

    private Main() {}

    /**
     * Runs a command.
     *
     * @param arguments see {@code --help}
     * @throws Exception for a failure without its own message
     */
    public static void main(String[] arguments) throws Exception {
        // warnings go to the terminal
        System.setProperty("log4j.provider", "org.apache.logging.log4j.simple.internal.SimpleProvider");
        List<String> rest = Arrays.asList(arguments);
        String command = rest.isEmpty() ? "run" : rest.getFirst();
        switch (command) {
            case "child" -> System.exit(Child.run(rest.subList(1, rest.size())));
            case "ring-side" -> {
                Cores.ofThisProcess().pinToSecond();
                RingSideProcess.serve(Path.of(rest.get(1)), ChildProcess.library());
            }
            case "jmh" -> org.openjdk.jmh.Main
                    .main(FenceBenchmark.arguments(rest.subList(1, rest.size()), FenceBenchmark.withoutCuda())
                            .toArray(String[]::new));
            default -> System.exit(commandLine().execute(arguments));
        }
    }

    /**
     * Returns the command line for users. A wrong command line causes one sentence and status 2. A failure causes one
     * sentence and status 1.
     */
    static CommandLine commandLine() {
        return new CommandLine(new RunCommand()).setParameterExceptionHandler((wrong, arguments) -> {
            CommandLine command = wrong.getCommandLine();
            command.getErr().println(wrong.getMessage() + "; --help lists what there is");
            return command.getCommandSpec().exitCodeOnInvalidInput();
        }).setExecutionExceptionHandler((failure, command, parsed) -> {
            if (!(failure instanceof IOException) && !(failure instanceof IllegalArgumentException)) {
                throw failure;
            }
            command.getErr().println(failure.getMessage());
            return command.getCommandSpec().exitCodeOnExecutionException();
        });
    }
}
