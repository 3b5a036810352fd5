package org.millrace.bench.run;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.millrace.bench.ring.RingSideProcess;
import org.millrace.bench.suite.Cores;

/** The command line. */
public final class Main {

    private Main() {}

    /**
     * Runs a command.
     *
     * @param arguments see {@link Options#USAGE}
     * @throws Exception if something fails that no message was written for
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
            case "disassemble" -> System.exit(DisassembleCommand.run(rest.subList(1, rest.size())));
            case "render" -> RenderCommand.run(rest.subList(1, rest.size()));
            case "jmh" -> org.openjdk.jmh.Main.main(Arrays.copyOfRange(arguments, 1, arguments.length));
            default -> System.exit(RunCommand.run(rest));
        }
    }
}
