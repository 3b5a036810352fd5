package org.millrace.cli;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.net.socket.NamedHost;
import org.millrace.net.socket.SocketOptions;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;

/** {@code millrace metrics}. */
@Command(
        name = "metrics",
        description = {"Counters of all processes of this user in OpenMetrics' format: once on standard output, or by"
                + " HTTP for Prometheus, with --listen. Nothing runs inside the job."})
final class MetricsCommand extends InspectCommand {

    @Option(
            names = "--listen",
            paramLabel = "ADDRESS:PORT",
            description = "Answer GET /metrics at this address until Ctrl-C; port 0 takes any that is free. Anybody"
                    + " who reaches the address may read.")
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
                throw new IllegalArgumentException("no address"); // an empty one would be taken for this host
            }
            return new InetSocketAddress(NamedHost.of(text.substring(0, colon), SocketOptions.defaults()).listenAt(),
                    Integer.parseInt(text.substring(colon + 1)));
        } catch (IOException | IllegalArgumentException unusable) {
            throw new ParameterException(spec.commandLine(), "--listen=" + text
                    + " is not usable; allowed: an address of this host and a port, as in 127.0.0.1:9400");
        }
    }

    /** By itself, so that a runtime without the JDK's server can load the command. */
    private static final class Server {
        static final String MODULE = "jdk.httpserver";

        static int start(InetSocketAddress address, Supplier<String> metrics) {
            try {
                HttpServer server = HttpServer.create(address, 0);
                server.createContext("/metrics", exchange -> answer(exchange, metrics));
                server.start();
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
}
