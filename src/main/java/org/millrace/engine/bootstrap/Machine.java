package org.millrace.engine.bootstrap;

import java.io.IOException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.millrace.net.connection.PeerText;

/** What this machine is called where ranks compare. */
public final class Machine {

    private static final Path KERNEL = Path.of("/proc/sys/kernel");
    static final String NAME = PeerText.line(name());

    private Machine() {}

    /** Without the name service where that can be had: a broken resolver would cost seconds. */
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
     * The same for all processes that run on one kernel, in any container, and see its GPUs: its boot id; the host's
     * name where there is none.
     */
    public static String kernel() {
        try {
            return Files.readString(KERNEL.resolve("random/boot_id")).strip();
        } catch (IOException notLinux) {
            return NAME;
        }
    }

    /**
     * The same for all processes that reach each other over loopback: two containers of one machine share the kernel,
     * but may have loopbacks and names of their own.
     */
    public static String host() {
        return kernel() + "/" + NAME;
    }
}
