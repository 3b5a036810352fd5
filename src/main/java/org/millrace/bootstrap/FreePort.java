package org.millrace.bootstrap;

import java.io.IOException;
import java.net.BindException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Selects a TCP port for a process that starts later. The system assigns ephemeral ports to other programs at any time,
 * also to their outgoing connections. An ephemeral port can therefore be taken before the process listens at it.
 */
public final class FreePort {

    /** Lowest port that is considered. It is below Linux's default range of ephemeral ports. */
    private static final int FIRST = 10_000;
    private static final int MIN_COUNT = 1000;
    private static final int ATTEMPTS = 100;
    private static final Path EPHEMERAL = Path.of("/proc/sys/net/ipv4/ip_local_port_range");

    private FreePort() {}

    /**
     * Returns a port that is free now at all addresses of this host. The port is not ephemeral, if the system leaves
     * enough other ports.
     *
     * @throws IOException if no port is free
     */
    public static int find() throws IOException {
        return find(firstEphemeral(EPHEMERAL));
    }

    /** @param end upper bound of the ports that are not ephemeral, exclusive */
    static int find(int end) throws IOException {
        for (int i = 0; i < ATTEMPTS && end - FIRST >= MIN_COUNT; i++) {
            try {
                return bound(ThreadLocalRandom.current().nextInt(FIRST, end));
            } catch (BindException taken) {
                // The next attempt tries another port.
            }
        }
        return bound(0);
    }

    private static int bound(int port) throws IOException {
        try (ServerSocket socket = new ServerSocket(port, 1)) {
            return socket.getLocalPort();
        }
    }

    /** Returns the first ephemeral port; 0 if it is unknown. */
    static int firstEphemeral(Path range) {
        try {
            return Integer.parseInt(Files.readString(range).strip().split("\\s+")[0]);
        } catch (IOException | NumberFormatException unknown) {
            return 0;
        }
    }
}
