package org.millrace;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Assumptions;

/** Counts how often the calling thread leaves its core to wait. The count shows whether a loop sleeps or spins. */
public final class ThreadSleeps {

    private static final Path STATUS = Path.of("/proc/thread-self/status");
    private static final String COUNT = "voluntary_ctxt_switches:";

    private ThreadSleeps() {}

    /** Returns the number of waits of the calling thread since its start. */
    public static long now() {
        Assumptions.assumeTrue(Files.exists(STATUS), "SKIPPED: sleeps are counted in /proc, which is not there");
        try {
            return Files.readAllLines(STATUS)
                    .stream()
                    .filter(line -> line.startsWith(COUNT))
                    .mapToLong(line -> Long.parseLong(line.substring(COUNT.length()).strip()))
                    .sum();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
