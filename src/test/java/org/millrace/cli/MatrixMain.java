package org.millrace.cli;

import java.io.PrintWriter;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.millrace.cli.run.JavaCommand;

/**
 * Runs every collective over every transport, in every protocol and mode, and checks every element:
 * {@code mvn -Pmatrix}. The program is {@code millrace} with the additional command {@code matrix}.
 */
public final class MatrixMain {

    private MatrixMain() {}

    /** @param arguments arguments of {@code millrace}, which begin with {@code matrix} */
    public static void main(String[] arguments) {
        System.exit(run(new PrintWriter(System.out, true), new PrintWriter(System.err, true), arguments));
    }

    /** {@return the exit status} */
    public static int run(PrintWriter out, PrintWriter err, String... arguments) {
        return Main.run(Map.of("matrix", new MatrixCommand()), out, err, arguments);
    }

    /** Returns the command that starts a rank in a separate process. */
    static List<String> command(List<String> arguments) {
        List<String> command = JavaCommand.of(arguments);
        Collections.replaceAll(command, Main.class.getName(), MatrixMain.class.getName());
        return command;
    }
}
