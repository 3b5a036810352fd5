package org.millrace.cli.inspect;

import java.io.PrintWriter;
import java.util.List;
import java.util.Map;
import org.millrace.cli.base.Columns;
import org.millrace.cli.base.Json;
import org.millrace.cli.base.Units;
import org.millrace.trace.TracedLink;
import org.millrace.trace.TracedProcess;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.Option;

/** {@code millrace ps}. */
@Command(name = "ps", description = {"List this user's processes that have Millrace's connections."})
public final class PsCommand extends InspectCommand {

    @Option(
            names = {"-a", "--all"},
            description = "Also those that ended with something open, or by a failure, as long as their traces are there.")
    private boolean all;
    @Option(names = "--json", description = "Write JSON.")
    private boolean json;

    @Override
    public Integer call() {
        List<TracedProcess> read = processes.readNamed();
        List<TracedProcess> found = all ? read : processes.living(read);
        List<TracedLink> links = TracedLink.of(found);
        PrintWriter out = out();
        if (json) {
            out.print(Json.write(found.stream().map(process -> summary(process, links)).toList()));
        } else if (read.isEmpty()) {
            out.println(processes.nothing());
        } else {
            table(found, links).print(out);
            if (found.size() < read.size()) {
                out.println("... and " + (read.size() - found.size()) + " that ended (--all)");
            }
        }
        out.flush();
        return ExitCode.OK;
    }

    private static Columns table(List<TracedProcess> found, List<TracedLink> links) {
        Columns table = new Columns("PID", "RANK", "<STATE", "UP", "SEEN", "CONNECTIONS", "AGENTS", "<PROGRAM",
                "<LISTENS ON", "<LAST MESSAGE");
        for (TracedProcess process : found) {
            Map<String, Object> row = summary(process, links);
            table.add(Long.toString(process.identity().pid()), Processes.rank(process, links), Processes.state(process),
                    Units.seconds((Double) row.get("up_seconds")), Units.seconds((Double) row.get("seen_seconds_ago")),
                    String.valueOf(row.get("connections")), Integer.toString(process.agents().size()),
                    process.program(), String.join(", ", process.ports()), process.messages().isEmpty() ? ""
                            : process.messages().getLast().text().lines().findFirst().orElse(""));
        }
        return table;
    }

    private static Map<String, Object> summary(TracedProcess process, List<TracedLink> links) {
        return Json.object("pid", process.identity().pid(), "rank", Processes.rank(process, links), "state",
                Processes.state(process), "host", process.host(), "program", process.program(), "up_seconds",
                (process.read() - process.epochNanos()) / 1e9, "seen_seconds_ago",
                Math.max(0, process.read() - process.heartbeat()) / 1e9, "connections",
                links.stream().filter(link -> link.process() == process).count(), "agents", process.agents().size(),
                "ports", process.ports(), "file", process.file().toString());
    }
}
