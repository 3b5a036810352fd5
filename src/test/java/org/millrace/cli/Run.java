package org.millrace.cli;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import java.util.stream.Stream;
import org.millrace.cli.run.JavaCommand;

/** A command that has run in this process, with its exit status and its output. */
public record Run(int status, String out, String err) {

    static {
        System.setProperty(JavaCommand.OPTIONS, ChildMain.BRIEF);
    }

    private interface CommandLineMain {
        int run(PrintWriter out, PrintWriter err, String... arguments);
    }

    private static Run of(CommandLineMain main, String... arguments) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        int status = main.run(new PrintWriter(out, true), new PrintWriter(err, true), arguments);
        return new Run(status, out.toString(), err.toString());
    }

    public static Run of(String... arguments) {
        return of(Main::run, arguments);
    }

    /** Runs the command line with {@code matrix}. */
    static Run matrix(String... arguments) {
        return of(MatrixMain::run, Stream.concat(Stream.of("matrix"), Stream.of(arguments)).toArray(String[]::new));
    }

    /** Returns the lines of the table as columns. */
    public List<String[]> rows() {
        return out.lines()
                .filter(line -> !line.startsWith("#") && !line.isBlank())
                .map(line -> line.strip().split(" +"))
                .toList();
    }

    @Override
    public String toString() {
        return "status " + status + "\n--- out\n" + out + "--- err\n" + err;
    }
}
