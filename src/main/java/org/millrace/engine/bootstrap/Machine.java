package org.millrace.engine.bootstrap;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** What this machine is called where ranks compare. */
public final class Machine {

    private static final Path BOOT_ID = Path.of("/proc/sys/kernel/random/boot_id");

    private Machine() {}

    /**
     * The same for all processes that run on one kernel, in any container, and see its GPUs: its boot id; the host's
     * name where there is none.
     */
    public static String kernel() {
        try {
            return Files.readString(BOOT_ID).strip();
        } catch (IOException notLinux) {
            return RankIdentity.hostName();
        }
    }

    /**
     * The same for all processes that reach each other over loopback: two containers of one machine share the kernel,
     * but may have loopbacks and names of their own.
     */
    public static String host() {
        return kernel() + "/" + RankIdentity.hostName();
    }
}
