package org.millrace.cli.inspect;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.ToDoubleFunction;
import org.jspecify.annotations.Nullable;
import org.millrace.cli.base.Columns;
import org.millrace.cli.base.Json;
import org.millrace.cli.base.Units;
import org.millrace.trace.ConnectionIdentity;
import org.millrace.trace.TraceLayout.GinFields.Kind;
import org.millrace.trace.TracedCommunicator.Operation;
import org.millrace.trace.TracedCommunicator;
import org.millrace.trace.TracedConnection;
import org.millrace.trace.TracedGin.Queue;
import org.millrace.trace.TracedGin;
import org.millrace.trace.TracedLink;
import org.millrace.trace.TracedProcess.TracedAgent;
import org.millrace.trace.TracedProcess;
import org.millrace.trace.TracedState;

/** Activity of processes between two readings of their traces. */
final class TopView {

    private final List<TracedProcess> processes;
    private final List<TracedLink> links;
    private final GinView gin;
    private final Map<String, TracedProcess> processesBefore = new HashMap<>();
    private final Map<String, TracedConnection> before = new HashMap<>();

    /**
     * @param earlier earlier reading of the same processes. If this reading lacks a process, the rates of the process
     *                are averages since the process's start
     */
    TopView(List<TracedProcess> earlier, List<TracedProcess> now) {
        processes = now;
        links = TracedLink.of(now);
        for (TracedProcess process : earlier) {
            processesBefore.put(process.file().toString(), process);
            process.connections().forEach(connection -> before.put(key(process, connection), connection));
        }
        gin = new GinView(earlier, now, this::seconds);
    }

    private static String key(TracedProcess process, TracedConnection connection) {
        return process.file() + "/" + connection.block() + "/" + connection.generation();
    }

    private double seconds(TracedProcess process) {
        TracedProcess earlier = processesBefore.get(process.file().toString());
        return Math.max(1e-3, (process.read() - (earlier == null ? process.epochNanos() : earlier.read())) / 1e9);
    }

    private double bytesPerSecond(TracedLink link) {
        TracedConnection earlier = before.get(key(link.process(), link.connection()));
        return (link.connection().bytes() - (earlier == null ? 0 : earlier.bytes())) / seconds(link.process());
    }

    private double stepsPerSecond(TracedLink link) {
        TracedConnection earlier = before.get(key(link.process(), link.connection()));
        return (link.connection().done()
                - (earlier == null ? link.connection().identity().firstStep() : earlier.done()))
                / seconds(link.process());
    }

    private double sum(@Nullable TracedProcess of, boolean sends) {
        return links.stream()
                .filter(link -> (of == null || link.process() == of) && link.connection().sends() == sends)
                .mapToDouble(this::bytesPerSecond)
                .sum();
    }

    /**
     * Returns the lines of the view within a width and a height. If not all connections fit, the busiest connections
     * are shown.
     */
    List<String> lines(int width, int height) {
        List<String> lines = new ArrayList<>();
        lines.add(cut("millrace top: " + Units.count(processes.size(), "process", "processes") + ", " + connections(),
                width));
        lines.addAll(processTable().lines(width));
        List<TracedLink> sorted = new ArrayList<>(links);
        List<String> contexts = gin.lines(width, Math.max(2, (height - lines.size()) / 2));
        int room = Math.max(1, height - lines.size() - contexts.size() - 3);
        if (sorted.size() > room) {
            // Busy connections come first, the busiest one at the top. Idle connections follow, the one with the most
            // recent step first.
            sorted.sort(Comparator.comparingDouble((TracedLink link) -> -bytesPerSecond(link))
                    .thenComparingDouble(TracedLink::standsSeconds));
            sorted = sorted.subList(0, room);
        }
        if (!links.isEmpty() || contexts.isEmpty()) {
            lines.add("");
            lines.addAll(connectionTable(sorted).lines(width));
        }
        if (sorted.size() < links.size()) {
            lines.add(cut("... and " + (links.size() - sorted.size()) + " more", width));
        }
        lines.addAll(contexts);
        return lines;
    }

    private String connections() {
        int direct = (int) links.stream().filter(link -> link.connection().isDirect()).count();
        if (direct == links.size() && direct != 0) {
            return Units.count(direct, "direct connection", "direct connections") + " (bytes are not counted)";
        }
        return Units.count(links.size(), "connection", "connections") + (direct == 0 ? "" : " (" + direct + " direct)")
                + ", " + Units.decimal(sum(null, true)) + "B/s out, " + Units.decimal(sum(null, false)) + "B/s in";
    }

    private static String cut(String line, int width) {
        return line.length() <= width ? line : line.substring(0, width);
    }

    private Columns processTable() {
        Columns table =
                new Columns("PID", "RANK", "<STATE", "OUT/s", "IN/s", "CPU%", "BUSY%", "<OPERATION", "<PROGRAM");
        for (TracedProcess process : processes) {
            table.add(Long.toString(process.identity().pid()), Processes.rank(process, links), Processes.state(process),
                    rate(process, true), rate(process, false), cpu(process), busy(process), operation(process),
                    process.program());
        }
        return table;
    }

    /**
     * Returns the rate of the bytes that a process sends or receives; empty if all its connections are direct. Bytes of
     * direct connections, which GPUs copy without a proxy, are not counted.
     */
    private String rate(TracedProcess process, boolean sends) {
        List<TracedLink> own = links.stream().filter(link -> link.process() == process).toList();
        return !own.isEmpty() && own.stream().allMatch(link -> link.connection().isDirect()) ? ""
                : Units.decimal(sum(process, sends));
    }

    /** Returns the processor time of all agents of a process, as a percentage of one core. */
    private String cpu(TracedProcess process) {
        TracedProcess earlier = processesBefore.get(process.file().toString());
        double nanos = process.agents().stream().mapToLong(TracedAgent::cpuNanos).sum();
        double then = earlier == null ? 0 : earlier.agents().stream().mapToLong(TracedAgent::cpuNanos).sum();
        return process.agents().isEmpty() ? "" : Units.percent((nanos - then) / 1e9, seconds(process));
    }

    private String busy(TracedProcess process) {
        TracedProcess earlier = processesBefore.get(process.file().toString());
        double passes = process.agents().stream().mapToLong(TracedAgent::passes).sum();
        double busy = process.agents().stream().mapToLong(TracedAgent::busy).sum();
        if (earlier != null) {
            passes -= earlier.agents().stream().mapToLong(TracedAgent::passes).sum();
            busy -= earlier.agents().stream().mapToLong(TracedAgent::busy).sum();
        }
        return Units.percent(busy, passes);
    }

    private static String operation(TracedProcess process) {
        return process.communicators()
                .stream()
                .map(TracedCommunicator::present)
                .filter(Objects::nonNull)
                .max(Comparator.comparingLong(Operation::enqueued))
                .map(TopView::text)
                .orElse("");
    }

    /** Returns an operation as text: its name, number and size in bytes, for instance {@code all_reduce #4933 16M}. */
    static String text(Operation operation) {
        return operation.name()
                + (operation.peer() >= 0 ? (operation.name().equals("receive") ? " from " : " to ") + operation.peer()
                        : operation.sequence() < 0 ? "" : " #" + operation.sequence())
                + (operation.bytes() <= 0 ? "" : " " + Units.bytes(operation.bytes()));
    }

    private Columns connectionTable(List<TracedLink> shown) {
        Columns table = new Columns("PID", "RANK", "<", "PEER", "CH", "<NET", "B/s", "STEPS/s", "<WAITS FOR", "SINCE",
                "STEP", "<PROTO", "FRAMES", "BYTES", "KERNEL%", "WIRE%", "PEER%", "AGENT", "<PEER'S PROCESS");
        for (TracedLink link : shown) {
            TracedConnection connection = link.connection();
            boolean direct = connection.isDirect();
            double waits = connection.kernelNanos() + connection.wireNanos() + connection.peerNanos();
            table.add(Long.toString(link.process().identity().pid()), number(link.rank()),
                    connection.sends() ? "->" : "<-",
                    connection.identity().kind() == ConnectionIdentity.COLLNET ? "all"
                            : who(link.peer(), link.other() == null ? null : link.other().process()),
                    number(link.channel()), network(connection.identity()),
                    direct ? "" : Units.decimal(bytesPerSecond(link)), Units.decimal(stepsPerSecond(link)),
                    link.waitsFor().label(), Units.seconds(link.standsSeconds()), Long.toString(connection.done()),
                    connection.last().isEmpty() ? "" : connection.last().getLast().protocol(),
                    direct ? "" : Units.decimal(connection.frames()), direct ? "" : Units.bytes(connection.bytes()),
                    Units.percent(connection.kernelNanos(), waits), Units.percent(connection.wireNanos(), waits),
                    Units.percent(connection.peerNanos(), waits), direct ? "" : number(connection.agent()),
                    connection.identity().peerText());
        }
        return table;
    }

    /**
     * Returns the name of a connection's network. The text "p2p" is added if the connection serves sends and receives.
     */
    private static String network(ConnectionIdentity identity) {
        return identity.network() + (identity.kind() == 1 ? " p2p" : "");
    }

    /** Returns a rank, or the process if the rank is unknown. */
    private static String who(int rank, @Nullable TracedProcess process) {
        return rank >= 0 ? Integer.toString(rank) : process == null ? "?" : "pid " + process.identity().pid();
    }

    private static String number(int number) {
        return number < 0 ? "?" : Integer.toString(number);
    }

    Map<String, Object> json() {
        return Json.object("processes",
                processes.stream()
                        .map(process -> Json.object("pid", process.identity().pid(), "rank",
                                Processes.rank(process, links), "state", Processes.state(process), "seconds",
                                seconds(process), "bytes_out_per_second", sum(process, true), "bytes_in_per_second",
                                sum(process, false), "operation", operation(process)))
                        .toList(),
                "connections",
                links.stream()
                        .map(link -> Json.with(DumpDocument.link(link), "bytes_per_second", bytesPerSecond(link),
                                "steps_per_second", stepsPerSecond(link)))
                        .toList(),
                "gin", gin.json());
    }

    /** Activity of GIN contexts between two readings of traces. */
    static final class GinView {

        private record Context(TracedProcess process, TracedGin gin, double seconds, @Nullable TracedGin before) {

            long count(Kind kind) {
                return gin.descriptors().getOrDefault(kind, 0L);
            }

            double rate(Kind kind) {
                return (count(kind) - (before == null ? 0 : before.descriptors().getOrDefault(kind, 0L))) / seconds;
            }

            long underWay() {
                return gin.queues().stream().mapToLong(queue -> queue.taken() - queue.completed() & 0xffff_ffffL).sum();
            }

            double standsSeconds() {
                long last = gin.queues().stream().mapToLong(Queue::lastChange).max().orElse(0);
                return last == 0 ? 0 : Math.max(0, process.read() - last) / 1e9;
            }
        }

        private final List<Context> contexts = new ArrayList<>();

        /** @param seconds returns the time between the two readings of a process, in seconds */
        GinView(List<TracedProcess> earlier, List<TracedProcess> now, ToDoubleFunction<TracedProcess> seconds) {
            Map<String, TracedGin> before = new HashMap<>();
            for (TracedProcess process : earlier) {
                process.gin().forEach(context -> before.put(key(process, context), context));
            }
            for (TracedProcess process : now) {
                for (TracedGin context : process.gin()) {
                    if (context.state() != TracedState.CLOSED) {
                        contexts.add(new Context(process, context, seconds.applyAsDouble(process),
                                before.get(key(process, context))));
                    }
                }
            }
            contexts.sort(Comparator.comparingLong((Context each) -> each.gin.communicator())
                    .thenComparingInt(each -> each.gin.rank())
                    .thenComparingInt(each -> each.gin.context()));
        }

        private static String key(TracedProcess process, TracedGin context) {
            return process.file() + "/" + context.communicator() + "/" + context.rank() + "/" + context.context();
        }

        /**
         * Returns an empty line and the lines of a table. The result has at most {@code height} lines. It is empty if
         * there are no contexts.
         */
        List<String> lines(int width, int height) {
            if (contexts.isEmpty()) {
                return List.of();
            }
            Columns table = new Columns("PID", "RANK", "GIN CONTEXT", "PUT/s", "SIGNAL/s", "GET/s", "UNDER WAY",
                    "SINCE", "<COMMUNICATOR", "PUTS", "VALUES", "SIGNALS", "GETS", "FLUSHES");
            int shown = contexts.size() <= height - 2 ? contexts.size() : Math.max(1, height - 3);
            for (Context each : contexts.subList(0, shown)) {
                table.add(Long.toString(each.process.identity().pid()),
                        each.gin.rank() < 0 ? "?" : Integer.toString(each.gin.rank()),
                        Integer.toString(each.gin.context()),
                        Units.decimal(each.rate(Kind.PUT) + each.rate(Kind.VALUE)),
                        Units.decimal(each.rate(Kind.SIGNAL) + each.rate(Kind.SIGNALLED)),
                        Units.decimal(each.rate(Kind.GET)), Long.toString(each.underWay()),
                        Units.seconds(each.standsSeconds()),
                        each.gin.communicator() == 0 ? "?" : Long.toHexString(each.gin.communicator()),
                        Units.decimal(each.count(Kind.PUT)), Units.decimal(each.count(Kind.VALUE)),
                        Units.decimal(each.count(Kind.SIGNAL)), Units.decimal(each.count(Kind.GET)),
                        Units.decimal(each.count(Kind.FLUSH)));
            }
            List<String> lines = new ArrayList<>(List.of(""));
            lines.addAll(table.lines(width));
            if (shown < contexts.size()) {
                lines.add("... and " + (contexts.size() - shown) + " more contexts");
            }
            return lines;
        }

        List<Map<String, Object>> json() {
            return contexts.stream()
                    .map(each -> Json.with(DumpDocument.gin(each.process, each.gin), "pid",
                            each.process.identity().pid(), "puts_per_second",
                            each.rate(Kind.PUT) + each.rate(Kind.VALUE), "signals_per_second",
                            each.rate(Kind.SIGNAL) + each.rate(Kind.SIGNALLED), "gets_per_second", each.rate(Kind.GET),
                            "under_way", each.underWay()))
                    .toList();
        }
    }
}
