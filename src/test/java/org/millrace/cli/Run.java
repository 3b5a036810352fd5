package org.millrace.cli;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import org.millrace.cli.console.JavaCommand;

/** A command that has run in this process: its exit status and what it printed. */
record Run(int status, String out, String err) {

    static {
        System.setProperty(JavaCommand.OPTIONS, ChildMain.BRIEF);
    }

    static Run of(String... arguments) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        int status = Main.run(new PrintWriter(out, true), new PrintWriter(err, true), arguments);
        return new Run(status, out.toString(), err.toString());
    }

    /** Lines of the table, as columns. */
    List<String[]> rows() {
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
