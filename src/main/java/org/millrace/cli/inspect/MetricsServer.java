package org.millrace.cli.inspect;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.function.Supplier;
import org.millrace.MillraceException;

/** Answers {@code GET /metrics}. By itself: the module that it needs is missing in a Java that was made without it. */
final class MetricsServer {

    private static final String MODULE = "jdk.httpserver";
    private static final int OK = 200;
    private static final int NOT_ALLOWED = 405;

    private MetricsServer() {}

    /** Begins to answer, on threads of its own; returns the port. */
    static int start(InetSocketAddress address, Supplier<String> metrics) {
        if (ModuleLayer.boot().findModule(MODULE).isEmpty()) {
            throw new MillraceException("this Java has no HTTP server: run the command with a whole JDK, or make the"
                    + " runtime with jlink --add-modules " + MODULE + " and what it has now; without --listen the"
                    + " metrics are printed, and need none");
        }
        try {
            return Server.start(address, metrics);
        } catch (IOException e) {
            throw new MillraceException("cannot listen at " + address + ": " + e.getMessage(), e);
        }
    }

    private static final class Server {

        static int start(InetSocketAddress address, Supplier<String> metrics) throws IOException {
            HttpServer server = HttpServer.create(address, 0);
            server.createContext("/metrics", exchange -> answer(exchange, metrics));
            server.start();
            return server.getAddress().getPort();
        }

        private static void answer(HttpExchange exchange, Supplier<String> metrics) throws IOException {
            try (exchange) {
                boolean get = exchange.getRequestMethod().equals("GET");
                byte[] text = get ? metrics.get().getBytes(StandardCharsets.UTF_8) : new byte[0];
                exchange.getResponseHeaders().set("Content-Type", OpenMetrics.CONTENT_TYPE);
                exchange.sendResponseHeaders(get ? OK : NOT_ALLOWED, get ? text.length : -1);
                exchange.getResponseBody().write(text);
            }
        }
    }
}
