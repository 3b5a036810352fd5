package org.millrace.net.connection;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.ListeningPort;
import org.millrace.trace.ProcessTrace;

/**
 * The ports that this process listens on. Each port is logged once, with its purpose, and appears in the process's
 * trace while it is open. Safe from any thread.
 */
public final class ListeningPorts {

    private static final Logger LOG = LogManager.getLogger(ListeningPorts.class);
    /** Open ports. Guarded by itself. */
    private static final Map<ServerSocketChannel, ListeningPort> OPEN = new LinkedHashMap<>();

    private ListeningPorts() {}

    /**
     * Logs a bound port and adds it to the process's trace. {@link #close} closes the port.
     *
     * @param note further text for the log; may be empty
     */
    public static void opened(ServerSocketChannel server, ListeningPort.Purpose purpose, String note)
            throws IOException {
        ListeningPort port = ListeningPort.of((InetSocketAddress) server.getLocalAddress(), purpose);
        LOG.info("listens on {}{}{}", port, note.isEmpty() ? "" : ": ", note);
        synchronized (OPEN) {
            OPEN.put(server, port);
            show();
        }
    }

    private static void show() {
        ProcessTrace trace = ProcessTrace.current();
        if (trace != null) {
            trace.ports(List.copyOf(OPEN.values()));
        }
    }

    /** Closes a port. May be called twice, and with a channel that was not opened completely. */
    public static void close(@Nullable ServerSocketChannel server) {
        synchronized (OPEN) {
            if (OPEN.remove(server) != null) {
                show();
            }
        }
        ConnectionState.closeQuietly(server);
    }
}
