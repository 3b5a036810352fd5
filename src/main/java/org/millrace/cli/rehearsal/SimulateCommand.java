package org.millrace.cli.rehearsal;

import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;
import org.millrace.cli.base.Columns;
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
    private static final String[] PARTS = {"latency", "bandwidth", "proxy", "kernel", "stragglers"};
    private static final String[] COLORS = {"#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756"};

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

    @Option(names = "--html", paramLabel = "FILE", description = "Draw it there too: a page for browsers.")
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
            Json.save("--html", html, page(all, forecast.basis()));
        }
        return ExitCode.OK;
    }

    /** Returns a page with bars. The longest operation of each kind and size has a bar of full length. */
    private String page(List<Forecast.Row> rows, String basis) {
        StringBuilder page = new StringBuilder("<!DOCTYPE html><meta charset=\"utf-8\"><title>millrace simulate</title>"
                + "<style>body{font:14px sans-serif}td{padding:2px 8px;white-space:nowrap}i{display:inline-block;"
                + "height:14px}</style><h1>What operations would take</h1><p>");
        page.append("Link: ")
                .append(escape(link == null ? "that of the recording" : link))
                .append(". ")
                .append(escape(basis))
                .append("</p><p>");
        for (int part = 0; part < PARTS.length; part++) {
            page.append("<i style=\"width:14px;background:")
                    .append(COLORS[part])
                    .append("\"></i> ")
                    .append(PARTS[part])
                    .append(" ");
        }
        page.append("</p><table>");
        for (Forecast.Row row : rows) {
            double longest = rows.stream()
                    .filter(other -> other.kind().equals(row.kind()))
                    .mapToDouble(other -> other.time() + other.stragglers())
                    .max()
                    .orElse(1);
            double[] parts = {row.latency(), row.bandwidth(), row.proxy(), row.kernel(), row.stragglers()};
            page.append("<tr><td>")
                    .append(escape(row.kind().name()))
                    .append("<td>")
                    .append(row.kind().bytes())
                    .append(" B<td>")
                    .append(row.ranks())
                    .append(" ranks<td>")
                    .append(row.algorithm())
                    .append("<td>")
                    .append(Units.micros(row.time() + row.stragglers()))
                    .append(" us<td>");
            for (int part = 0; part < parts.length; part++) {
                page.append(
                        String.format(Locale.ROOT, "<i title=\"%s %s us\" style=\"width:%.1fpx;background:%s\"></i>",
                                PARTS[part], Units.micros(parts[part]), 600 * parts[part] / longest, COLORS[part]));
            }
            page.append("</tr>\n");
        }
        return page.append("</table>\n").toString();
    }

    private static String escape(String text) {
        return text.replace("&", "&amp;").replace("<", "&lt;");
    }
}
