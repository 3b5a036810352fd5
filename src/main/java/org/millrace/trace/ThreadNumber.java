package org.millrace.trace;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Threads as the kernel numbers them. */
final class ThreadNumber {

    private static final Path SELF = Path.of("/proc/thread-self");

    private ThreadNumber() {}

    /** The calling thread's; 0 where the kernel does not tell. */
    static int current() {
        try {
            return Integer.parseInt(Files.readSymbolicLink(SELF).getFileName().toString());
        } catch (IOException | RuntimeException untold) {
            return 0;
        }
    }

    /** Nanoseconds for which a thread of this process has run; 0 where the kernel does not tell. */
    static long cpuNanos(int thread) {
        try {
            String text = Files.readString(Path.of("/proc/self/task/" + thread + "/schedstat"));
            return Long.parseLong(text.substring(0, text.indexOf(' ')));
        } catch (IOException | RuntimeException untold) {
            return 0;
        }
    }
}
