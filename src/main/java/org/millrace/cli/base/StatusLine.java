package org.millrace.cli.base;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * A line on a terminal that shows the current activity. Each text replaces the previous text. Without a terminal
 * nothing is shown.
 */
public final class StatusLine {

    public static final int OUT = 1;
    public static final int ERR = 2;

    private static final List<String> TERMINALS = List.of("/dev/pts/", "/dev/tty", "/dev/console");

    private final PrintWriter out;
    private final boolean terminal;
    private int shown;

    public StatusLine(PrintWriter out, boolean terminal) {
        this.out = out;
        this.terminal = terminal;
    }

    /**
     * Returns whether a standard stream is a terminal. {@link System#console()} does not suffice: it tests input and
     * output together, and not standard error.
     */
    public static boolean isTerminal(int descriptor) {
        try {
            String target = Files.readSymbolicLink(Path.of("/proc/self/fd/" + descriptor)).toString();
            return TERMINALS.stream().anyMatch(target::startsWith);
        } catch (IOException closedOrOtherSystem) {
            return false;
        }
    }

    public void show(String text) {
        if (terminal) {
            erase();
            out.print(text);
            out.flush();
            shown = text.length();
        }
    }

    public void erase() {
        if (shown > 0) {
            out.print("\r" + " ".repeat(shown) + "\r");
            out.flush();
            shown = 0;
        }
    }
}
