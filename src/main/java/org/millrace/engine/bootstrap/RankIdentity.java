package org.millrace.engine.bootstrap;

import java.io.IOException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.millrace.net.connection.PeerText;

/** A rank, and the process that is it: how messages name it. */
record RankIdentity(int rank, long pid, String host) {

    static RankIdentity local(int rank) {
        return new RankIdentity(rank, ProcessHandle.current().pid(), LocalHost.NAME);
    }

    /** The process alone, where the rank is said already. */
    String process() {
        return "pid " + pid + " on " + host;
    }

    @Override
    public String toString() {
        return "rank " + rank + " (" + process() + ")";
    }

    static String hostName() {
        return LocalHost.NAME;
    }

    /** Looked up once, and without the name service where that can be had: a broken resolver would cost seconds. */
    private static final class LocalHost {

        private static final Path KERNEL_NAME = Path.of("/proc/sys/kernel/hostname");

        static final String NAME = PeerText.line(find());

        private static String find() {
            try {
                return Files.readString(KERNEL_NAME).strip();
            } catch (IOException notLinux) {
                try {
                    return InetAddress.getLocalHost().getHostName();
                } catch (UnknownHostException nameless) {
                    return "unknown-host";
                }
            }
        }
    }
}
