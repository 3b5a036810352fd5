package org.millrace.cli;

import java.io.PrintWriter;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
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
final class TopCommand extends InspectCommand {

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
}
