package org.millrace.cli.inspect;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.millrace.cli.console.Json;
import org.millrace.cli.console.Paragraph;
import org.millrace.trace.reader.TracedProcess;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;

/** {@code millrace top}. */
@Command(
        name = "top",
        description = {"Show what each connection of running processes does, and for whom it waits, again and again:"
                + " rates, and since when nothing has happened. One that ends meanwhile stays. Ctrl-C ends it."})
public final class TopCommand extends InspectCommand {

    private static final int USUAL_WIDTH = 80;
    /** Cursor to the first place; the rest of a line, and of the screen, is cleared behind what is written. */
    private static final String HOME = "\u001b[H";
    private static final String CLEAR_LINE = "\u001b[K";
    private static final String CLEAR_BELOW = "\u001b[J";

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
        PrintWriter out = out();
        boolean inPlace = !json && !once && System.console() != null && System.console().isTerminal();
        List<TracedProcess> before = processes.living(once ? processes.require() : processes.read());
        do {
            TimeUnit.NANOSECONDS.sleep(Duration.ofMillis((long) (interval * 1000)).toNanos());
            List<TracedProcess> read = processes.read();
            List<TracedProcess> now = processes.living(read);
            TopView view = new TopView(before, now);
            int[] size = inPlace ? terminal() : new int[] {Integer.MAX_VALUE, USUAL_WIDTH};
            size[1] = columns == null ? size[1] : columns;
            if (json) {
                out.print(Json.write(view.json()));
            } else if (read.isEmpty()) {
                show(out, inPlace, Paragraph.wrap("", processes.nothing(), size[1]).lines().toList());
            } else {
                show(out, inPlace, view.lines(size[1], size[0]));
            }
            out.flush();
            before = now;
        } while (!once && !out.checkError());
        return ExitCode.OK;
    }

    private static void show(PrintWriter out, boolean inPlace, List<String> lines) {
        out.print(inPlace ? HOME : "");
        for (String line : lines) {
            out.print(line + (inPlace ? CLEAR_LINE : "") + "\n");
        }
        out.print(inPlace ? CLEAR_BELOW : "\n");
    }

    /** Lines and columns of the terminal, which may change at any time. */
    private static int[] terminal() {
        try {
            Process stty = new ProcessBuilder("stty", "size").redirectInput(ProcessBuilder.Redirect.INHERIT)
                    .redirectError(ProcessBuilder.Redirect.DISCARD)
                    .start();
            String[] words =
                    new String(stty.getInputStream().readAllBytes(), StandardCharsets.US_ASCII).strip().split(" ");
            int lines = Integer.parseInt(words[0]);
            int width = Integer.parseInt(words[1]);
            return new int[] {lines > 0 ? lines - 1 : Integer.MAX_VALUE, width > 0 ? width : USUAL_WIDTH};
        } catch (IOException | RuntimeException unknown) {
            return new int[] {Integer.MAX_VALUE, USUAL_WIDTH};
        }
    }
}
