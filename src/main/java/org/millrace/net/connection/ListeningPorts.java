package org.millrace.net.connection;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.channels.Channel;
import java.nio.channels.ServerSocketChannel;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.millrace.trace.ProcessTrace;

/**
 * The ports that this process listens on. Each port is logged once, with its purpose, and appears in the process's
 * trace while it is open. Safe from any thread.
 */
public final class ListeningPorts {

    private static final Logger LOG = LogManager.getLogger(ListeningPorts.class);
    /**
     * Texts about open ports, such as "10.0.0.1 port 41234 (connections)". The key is the port's server. Guarded by
     * this map's monitor.
     */
    private static final Map<Object, String> OPEN = new LinkedHashMap<>();

    private ListeningPorts() {}

    /**
     * Logs a bound port and adds it to the process's trace. {@link #close} closes the port.
     *
     * @param purpose use of the port, in a word or two
     * @param note    further text for the log; may be empty
     */
    public static void opened(ServerSocketChannel server, String purpose, String note) throws IOException {
        opened(server, (InetSocketAddress) server.getLocalAddress(), purpose, note);
    }

    /**
     * Logs a bound port and adds it to the process's trace. If the server is a channel, the trace contains the port
     * until the channel is closed.
     *
     * @param bound address and port of the server
     */
    public static void opened(Object server, InetSocketAddress bound, String purpose, String note) {
        String port = (bound.getAddress().isAnyLocalAddress() ? "*" : bound.getAddress().getHostAddress()) + " port "
                + bound.getPort() + " (" + purpose + ")";
        synchronized (OPEN) {
            OPEN.put(server, port);
        }
        show();
        LOG.info("listens on {}{}{}", port, note.isEmpty() ? "" : ": ", note);
    }

    /** Closes a port. May be called twice. */
    public static void close(ServerSocketChannel server) {
        ConnectionState.closeQuietly(server);
        show();
    }

    private static void show() {
        ProcessTrace trace = ProcessTrace.current();
        synchronized (OPEN) {
            OPEN.keySet().removeIf(server -> server instanceof Channel channel && !channel.isOpen());
            if (trace != null) {
                trace.ports(OPEN.values());
            }
        }
    }
}
