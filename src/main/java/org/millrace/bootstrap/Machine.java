package org.millrace.bootstrap;

import java.io.IOException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.millrace.net.connection.PeerText;

/** Names of this machine. Ranks compare these names to find out whether they share a machine. */
public final class Machine {

    private static final Path KERNEL = Path.of("/proc/sys/kernel");
    static final String NAME = PeerText.line(name());

    private Machine() {}

    /**
     * Returns the host name. Uses the name service only as the last source, because a broken resolver would take
     * seconds.
     */
    private static String name() {
        try {
            return Files.readString(KERNEL.resolve("hostname")).strip();
        } catch (IOException notLinux) {
            try {
                return InetAddress.getLocalHost().getHostName();
            } catch (UnknownHostException nameless) {
                return "unknown-host";
            }
        }
    }

    /**
     * Returns an identifier that is equal for all processes on one Linux kernel, in any container. Such processes also
     * see the same GPUs. The identifier is the boot id, or the host's name if the system has no boot id.
     */
    public static String kernel() {
        try {
            return Files.readString(KERNEL.resolve("random/boot_id")).strip();
        } catch (IOException notLinux) {
            return NAME;
        }
    }

    /**
     * Returns an identifier that is equal for all processes that reach each other over loopback. Two containers of one
     * machine share the Linux kernel, but may have separate loopback devices and names.
     */
    public static String host() {
        return kernel() + "/" + NAME;
    }
}
