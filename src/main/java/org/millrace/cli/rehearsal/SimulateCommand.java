package org.millrace.cli.rehearsal;

import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;
import org.millrace.cli.base.Columns;
import org.millrace.cli.base.Converters;
import org.millrace.cli.base.Json;
import org.millrace.cli.base.Subcommand;
import org.millrace.cli.base.Units;
import org.millrace.net.link.LinkShape;
import org.millrace.rehearsal.Forecast;
import org.millrace.rehearsal.RecordedRun;
import org.millrace.rehearsal.RecordingReader;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;

/** {@code millrace simulate DIR}. */
@Command(
        name = "simulate",
        description = {
                "Say what the recorded operations would take on other numbers of ranks, over other links: by a"
                        + " model of rings and trees of proxies, with the costs of steps that were recorded.",
                "Times are microseconds of one operation, and what the longest way through it consists of."},
        sortOptions = false)
public final class SimulateCommand extends Subcommand {

    private static final int MAX_RANKS = 1_000_000;
    @Parameters(paramLabel = "DIR", description = "What MILLRACE_RECORD was.")
    private Path directory;

    @Option(
            names = "--ranks",
            paramLabel = "N",
            split = ",",
            required = true,
            description = "How many, with commas between several.")
    private List<Integer> ranks;

    @Option(
            names = "--ranks-per-host",
            paramLabel = "K",
            defaultValue = "1",
            description = "How many ranks a host has; what goes from one to another of them passes no link (default: 1).")
    private int perHost;

    @Option(
            names = "--link",
            paramLabel = "LINK",
            description = "What each rank sends over to other hosts, as in MILLRACE_LINK: rate=400Gbit,delay=5us (default:"
                    + " no link, and so the network of the recording).")
    private @Nullable String link;

    @Option(
            names = "--html",
            paramLabel = "FILE",
            converter = Converters.ResultFile.class,
            description = "Draw it there too: a page for browsers.")
    private @Nullable Path html;

    @Override
    public Integer call() {
        require(perHost > 0, "--ranks-per-host: a whole number above 0");
        require(ranks.stream().allMatch(each -> each >= 2 && each <= MAX_RANKS),
                "--ranks: whole numbers from 2 to " + MAX_RANKS);
        require(link == null || !link.contains(":"),
                "--link: hosts are alike in a simulation: give one link for all, and no pairs of hosts");
        LinkShape shape;
        try {
            shape = link == null ? LinkShape.NONE : LinkShape.parse(link);
        } catch (IllegalArgumentException refused) {
            throw new ParameterException(spec.commandLine(), "--link: " + refused.getMessage(), refused);
        }
        RecordedRun run = RecordingReader.read(directory);
        require(!run.calls().isEmpty(), directory + " has no operations; under libnccl they are told where NCCL has an"
                + " interface for profilers");
        require(!run.steps().isEmpty(), directory
                + " has no steps, and a simulation needs their costs; ranks of one host"
                + " may exchange data without a proxy: record ranks of several hosts (perf --ranks-per-host 1)");
        Forecast forecast = new Forecast(run, shape, perHost);
        Columns table = new Columns("<OPERATION", "BYTES", "RANKS", "<ALGORITHM", "CALLS", "RECORDED", "TIME",
                "LATENCY", "BANDWIDTH", "PROXY", "KERNEL", "STRAGGLERS");
        List<Forecast.Row> all = new ArrayList<>();
        List<String> totals = new ArrayList<>();
        for (int count : ranks) {
            List<Forecast.Row> rows = forecast.rows(count);
            for (Forecast.Row row : rows) {
                table.add(row.kind().name(), Long.toString(row.kind().bytes()), Integer.toString(count),
                        row.algorithm(), Long.toString(row.calls()),
                        row.recorded() == 0 ? "" : Units.micros(row.recorded()),
                        Units.micros(row.time() + row.stragglers()), Units.micros(row.latency()),
                        Units.micros(row.bandwidth()), Units.micros(row.proxy()), Units.micros(row.kernel()),
                        Units.micros(row.stragglers()));
            }
            all.addAll(rows);
            totals.add(String.format(Locale.ROOT,
                    "all calls of a rank, one after the other, each by the quicker algorithm,"
                            + " on %d ranks: %.3f ms",
                    count, Forecast.total(rows) / 1e6));
        }
        PrintWriter out = spec.commandLine().getOut();
        out.println(forecast.basis());
        table.print(out);
        totals.forEach(out::println);
        out.flush();
        if (html != null) {
            List<String> notes = new ArrayList<>(totals);
            notes.add("Link: " + (link == null ? "that of the recording" : link) + ". Costs: " + forecast.basis());
            Json.save("--html", html, new SimulationPage(all, notes).toString());
        }
        return ExitCode.OK;
    }
}
