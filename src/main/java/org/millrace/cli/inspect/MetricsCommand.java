package org.millrace.cli.inspect;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.cli.base.Json;
import org.millrace.net.connection.ListeningPorts;
import org.millrace.net.socket.LocalAddress;
import org.millrace.net.socket.SocketOptions;
import org.millrace.trace.ProcessTrace;
import org.millrace.trace.TraceLayout.GinFields;
import org.millrace.trace.TracedConnection;
import org.millrace.trace.TracedGin;
import org.millrace.trace.TracedLink;
import org.millrace.trace.TracedProcess.TracedAgent;
import org.millrace.trace.TracedProcess;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;

/** {@code millrace metrics}. */
@Command(
        name = "metrics",
        description = {"Counters of all processes of this user in OpenMetrics' format: once on standard output, or by"
                + " HTTP for Prometheus, with --listen. Nothing runs inside the job."})
public final class MetricsCommand extends InspectCommand {

    @Option(
            names = "--listen",
            paramLabel = "ADDRESS:PORT",
            description = "Answer GET /metrics at this address until Ctrl-C; port 0 takes any that is free. Every "
                    + "process that reaches the address may read.")
    private @Nullable String listen;

    @Override
    public Integer call() throws InterruptedException {
        if (listen == null) {
            print(OpenMetrics.of(processes.readNamed()));
            return ExitCode.OK;
        }
        if (ModuleLayer.boot().findModule(Server.MODULE).isEmpty()) {
            throw new MillraceException("--listen needs the module " + Server.MODULE + ", and the Java runtime "
                    + System.getProperty("java.home") + " lacks it; 'millrace metrics' alone prints the same");
        }
        // The commands ps and doctor read the port from this process's trace. This process writes no trace to a
        // directory that the user has named. That directory may hold copies of traces. When a process opens its trace,
        // it deletes old traces in the directory.
        if (ProcessTrace.current() == null && !processes.isDirectoryNamed()) {
            ProcessTrace.open(processes.directory(), false);
            Optional.ofNullable(ProcessTrace.current()).ifPresent(own -> own.describe("metrics", -1, -1));
        }
        int port = Server.start(address(listen), () -> OpenMetrics.of(processes.read()));
        spec.commandLine()
                .getOut()
                .println("http://" + listen.substring(0, listen.lastIndexOf(':')) + ":" + port + "/metrics");
        out().flush();
        new CountDownLatch(1).await();
        return ExitCode.OK;
    }

    private InetSocketAddress address(String text) {
        int colon = text.lastIndexOf(':');
        try {
            if (colon < 1) {
                // An empty address is refused, because it would otherwise stand for this host.
                throw new IllegalArgumentException("no address");
            }
            return new InetSocketAddress(
                    LocalAddress.NamedHost.of(text.substring(0, colon), SocketOptions.defaults()).listenAt(),
                    Integer.parseInt(text.substring(colon + 1)));
        } catch (IOException | IllegalArgumentException unusable) {
            throw new ParameterException(spec.commandLine(), "--listen=" + text
                    + " is not usable; allowed: an address of this host and a port, as in 127.0.0.1:9400");
        }
    }

    /** HTTP server. It is a separate class, so that a Java runtime without the JDK's server can load the command. */
    private static final class Server {
        static final String MODULE = "jdk.httpserver";

        static int start(InetSocketAddress address, Supplier<String> metrics) {
            try {
                HttpServer server = HttpServer.create(address, 0);
                server.createContext("/metrics", exchange -> answer(exchange, metrics));
                server.start();
                ListeningPorts.opened(server, server.getAddress(), "metrics", "");
                return server.getAddress().getPort();
            } catch (IOException e) {
                throw new MillraceException("cannot listen at " + address + ": " + e.getMessage(), e);
            }
        }

        private static void answer(HttpExchange exchange, Supplier<String> metrics) throws IOException {
            try (exchange) {
                boolean get = exchange.getRequestMethod().equals("GET");
                byte[] text = get ? metrics.get().getBytes(StandardCharsets.UTF_8) : new byte[0];
                exchange.getResponseHeaders().set("Content-Type", OpenMetrics.CONTENT_TYPE);
                exchange.sendResponseHeaders(get ? 200 : 405, text.length == 0 ? -1 : text.length);
                exchange.getResponseBody().write(text);
            }
        }
    }

    /**
     * Writes the traces of processes in OpenMetrics' text format 1.0. The samples of a metric follow each other, as the
     * format requires.
     */
    static final class OpenMetrics {

        static final String CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8";

        private record Family(String name, String type, String unit, String help, List<String> samples) {
        }

        private final Map<String, Family> families = new LinkedHashMap<>();

        private OpenMetrics() {}

        static String of(List<TracedProcess> processes) {
            OpenMetrics metrics = new OpenMetrics();
            List<TracedLink> links = TracedLink.of(processes);
            for (TracedProcess process : processes) {
                metrics.add(process, links.stream().filter(link -> link.process() == process).toList());
            }
            StringBuilder text = new StringBuilder();
            for (Family family : metrics.families.values()) {
                text.append("# TYPE ").append(family.name).append(' ').append(family.type).append('\n');
                if (!family.unit.isEmpty()) {
                    text.append("# UNIT ").append(family.name).append(' ').append(family.unit).append('\n');
                }
                text.append("# HELP ").append(family.name).append(' ').append(family.help).append('\n');
                family.samples.forEach(sample -> text.append(sample).append('\n'));
            }
            return text.append("# EOF\n").toString();
        }

        private void add(TracedProcess process, List<TracedLink> links) {
            Map<String, Object> labels =
                    Json.object("pid", process.identity().pid(), "rank", Processes.rank(process, links));
            gauge("millrace_process_up", "", "1 while the process runs.", labels, process.alive() ? 1 : 0);
            gauge("millrace_process_failed", "", "1 once something has failed.", labels, process.failed() ? 1 : 0);
            gauge("millrace_process_seen_seconds", "seconds", "Since the process was last seen to run.", labels,
                    Math.max(0, process.read() - process.heartbeat()) / 1e9);
            process.agents().forEach(agent -> add(labels, agent));
            process.communicators().forEach(communicator -> {
                Map<String, Object> own = Json.with(labels, "communicator", Long.toHexString(communicator.hash()),
                        "name", communicator.name());
                counter("millrace_operations", "", "Operations that were enqueued.", own, communicator.enqueued());
            });
            links.forEach(link -> add(labels, link));
            process.gin().forEach(context -> add(labels, context));
        }

        private void add(Map<String, Object> process, TracedAgent agent) {
            Map<String, Object> labels = Json.with(process, "agent", agent.name(), "number", agent.number());
            counter("millrace_agent_passes", "", "Passes over connections.", labels, agent.passes());
            counter("millrace_agent_passes_busy", "", "Passes in which something was done.", labels, agent.busy());
            counter("millrace_agent_cpu_seconds", "seconds", "For how long the thread had a core.", labels,
                    agent.cpuNanos() / 1e9);
        }

        private void add(Map<String, Object> process, TracedLink link) {
            TracedConnection connection = link.connection();
            Map<String, Object> labels = Json.with(process, "rank", link.rank() < 0 ? "" : link.rank(), "peer",
                    link.peer() < 0 ? "" : link.peer(), "channel", link.channel(), "direction",
                    connection.identity().direction().label(), "network", connection.identity().network(),
                    "communicator", Long.toHexString(connection.identity().communicator()), "connection",
                    connection.block() + "." + connection.generation());
            counter("millrace_connection_frames", "", "Frames that were taken.", labels, connection.frames());
            counter("millrace_connection_bytes", "bytes", "Bytes of their payloads.", labels, connection.bytes());
            counter("millrace_connection_steps", "", "Steps that are complete.", labels,
                    connection.done() - connection.identity().firstStep());
            gauge("millrace_connection_frames_under_way", "", "1 while frames are under way.", labels,
                    connection.taken() == connection.done() ? 0 : 1);
            gauge("millrace_connection_stands_seconds", "seconds", "Since anything happened.", labels,
                    link.standsSeconds());
            waits(labels, "kernel", connection.kernelNanos());
            waits(labels, "wire", connection.wireNanos());
            waits(labels, "peer", connection.peerNanos());
        }

        private void waits(Map<String, Object> connection, String party, long nanos) {
            Map<String, Object> labels = Json.with(connection, "for", party);
            counter("millrace_connection_wait_seconds", "seconds", "For how long it waited, up to its last change.",
                    labels, nanos / 1e9);
        }

        private void add(Map<String, Object> process, TracedGin context) {
            Map<String, Object> labels = Json.with(process, "rank", context.rank() < 0 ? "" : context.rank(),
                    "communicator", Long.toHexString(context.communicator()), "context", context.context());
            for (GinFields.Kind kind : GinFields.Kind.values()) {
                Map<String, Object> own = Json.with(labels, "kind", kind.label());
                counter("millrace_gin_descriptors", "", "Descriptors that kernels posted.", own,
                        context.descriptors().getOrDefault(kind, 0L));
            }
        }

        private void gauge(String name, String unit, String help, Map<String, Object> labels, double value) {
            sample(name, "gauge", unit, help, name, labels, value);
        }

        private void counter(String name, String unit, String help, Map<String, Object> labels, double value) {
            sample(name, "counter", unit, help, name + "_total", labels, Math.max(0, value));
        }

        private void sample(String name, String type, String unit, String help, String sampleName,
                Map<String, Object> labels, double value) {
            StringBuilder sample = new StringBuilder(sampleName).append('{');
            labels.forEach((label, text) -> sample.append(sample.charAt(sample.length() - 1) == '{' ? "" : ",")
                    .append(label)
                    .append("=\"")
                    .append(text.toString().replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n"))
                    .append('"'));
            sample.append("} ")
                    .append(value == Math.rint(value) && Math.abs(value) < 1e15 ? Long.toString((long) value)
                            : Double.toString(value));
            families.computeIfAbsent(name, _ -> new Family(name, type, unit, help, new ArrayList<>())).samples
                    .add(sample.toString());
        }
    }
}
