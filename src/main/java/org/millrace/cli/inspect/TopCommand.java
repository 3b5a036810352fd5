package org.millrace.cli.inspect;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.millrace.cli.base.Json;
import org.millrace.cli.base.Paragraph;
import org.millrace.trace.TracedProcess;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;

/** {@code millrace top}. */
@Command(
        name = "top",
        description = {"Show what each connection of running processes does, and for whom it waits, again and again:"
                + " rates, and since when nothing has happened. One that ends meanwhile stays. q or Ctrl-C ends it."})
public final class TopCommand extends InspectCommand {

    @Option(names = "--once", description = "Show one interval, and end.")
    private boolean once;
    @Option(names = "--json", description = "Write JSON, a document for each interval.")
    private boolean json;
    @Option(
            names = {"-d", "--interval"},
            paramLabel = "SECONDS",
            defaultValue = "1",
            description = "Time between two looks (default: ${DEFAULT-VALUE}).")
    private double interval;
    @Option(
            names = "--columns",
            paramLabel = "N",
            description = "Width of what is shown (default: that of the terminal, or 80).")
    private @Nullable Integer columns;

    @Override
    public Integer call() throws InterruptedException {
        if (!(interval >= 0.05 && interval <= 3600)) {
            throw new ParameterException(spec.commandLine(),
                    "--interval=" + interval + " is not usable; allowed: 0.05 to 3600 seconds");
        }
        boolean inPlace = !json && !once && System.console() != null && System.console().isTerminal();
        try (Terminal terminal = inPlace ? new Terminal(out()) : null) {
            watch(terminal);
        }
        return ExitCode.OK;
    }

    private void watch(@Nullable Terminal terminal) throws InterruptedException {
        PrintWriter out = out();
        long nanos = Duration.ofMillis((long) (interval * 1000)).toNanos();
        List<TracedProcess> before = processes.living(once ? processes.require() : processes.readNamed());
        do {
            if (terminal == null) {
                TimeUnit.NANOSECONDS.sleep(nanos);
            } else if (terminal.awaitQuit(nanos)) {
                return;
            }
            List<TracedProcess> read = processes.read();
            List<TracedProcess> now = processes.living(read);
            TopView view = new TopView(before, now);
            int[] size = terminal == null ? new int[] {Integer.MAX_VALUE, Terminal.USUAL_WIDTH} : terminal.size();
            int width = columns == null ? size[1] : columns;
            List<String> lines = read.isEmpty() ? Paragraph.wrap("", processes.nothing(), width).lines().toList()
                    : view.lines(width, size[0]);
            if (json) {
                out.print(Json.write(view.json()));
            } else if (terminal == null) {
                lines.forEach(out::println);
                out.println();
            } else {
                terminal.show(lines);
            }
            out.flush();
            before = now;
        } while (!once && !out.checkError());
    }

    /**
     * Exclusive use of the terminal. New content replaces the previous content, and keys are read without Enter. The
     * terminal's original state is restored on close, and when the process ends.
     */
    static final class Terminal implements AutoCloseable {

        static final int USUAL_WIDTH = 80;
        /**
         * Escape sequence that moves the cursor to the top left. The next two constants clear the rest of a line and of
         * the screen.
         */
        private static final String HOME = "\u001b[H";
        private static final String CLEAR_LINE = "\u001b[K";
        private static final String CLEAR_BELOW = "\u001b[J";

        private final PrintWriter out;
        private final String before = stty("-g");
        private final CountDownLatch quit = new CountDownLatch(1);
        private final Thread atEnd = new Thread(this::restore, "millrace-terminal");
        private boolean restored;

        Terminal(PrintWriter out) {
            this.out = out;
            Runtime.getRuntime().addShutdownHook(atEnd);
            stty("-icanon", "-echo");
            Thread reader = new Thread(this::readKeys, "millrace-keys");
            reader.setDaemon(true); // a read returns only when a key is pressed, possibly never
            reader.start();
        }

        private void readKeys() {
            try {
                int key = System.in.read();
                while (key >= 0 && key != 'q' && key != 'Q') {
                    key = System.in.read();
                }
                if (key >= 0) {
                    quit.countDown();
                }
            } catch (IOException noKeys) {
                // Without keys from the terminal, the user can still press Ctrl-C.
            }
        }

        /** Waits for the given time. Returns true as soon as the user has pressed q. */
        boolean awaitQuit(long nanos) throws InterruptedException {
            return quit.await(nanos, TimeUnit.NANOSECONDS);
        }

        synchronized void show(List<String> lines) {
            if (!restored) {
                out.print(HOME);
                lines.forEach(line -> out.print(line + CLEAR_LINE + "\n"));
                out.print(CLEAR_BELOW);
                out.flush();
            }
        }

        /** Returns the terminal's current numbers of lines and columns. The user may change them at any time. */
        int[] size() {
            try {
                String[] words = stty("size").split(" ");
                int lines = Integer.parseInt(words[0]);
                int width = Integer.parseInt(words[1]);
                return new int[] {lines > 0 ? lines - 1 : Integer.MAX_VALUE, width > 0 ? width : USUAL_WIDTH};
            } catch (RuntimeException unknown) {
                return new int[] {Integer.MAX_VALUE, USUAL_WIDTH};
            }
        }

        private synchronized void restore() {
            if (!restored && !before.isEmpty()) {
                stty(before);
            }
            restored = true;
        }

        @Override
        public void close() {
            restore();
            Runtime.getRuntime().removeShutdownHook(atEnd);
        }

        /** Returns the output of stty; empty if stty is missing or standard input is not a terminal. */
        private static String stty(String... arguments) {
            List<String> command = new ArrayList<>(List.of("stty"));
            command.addAll(List.of(arguments));
            try {
                Process stty = new ProcessBuilder(command).redirectInput(ProcessBuilder.Redirect.INHERIT)
                        .redirectError(ProcessBuilder.Redirect.DISCARD)
                        .start();
                String said = new String(stty.getInputStream().readAllBytes(), StandardCharsets.US_ASCII).strip();
                stty.waitFor();
                return said;
            } catch (IOException absent) {
                return "";
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
                return "";
            }
        }
    }
}
