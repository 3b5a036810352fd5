package org.millrace.net.connection;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.function.LongSupplier;

/**
 * Determines when this process's links are checked. If a link has received no data, a check adds the time since the
 * previous check to the link's silence. If the process or the machine was stopped in this time, no data could arrive.
 * The increase is therefore at most two periods plus the time that the checking thread has run or waited for a core
 * since that check. While the thread runs or waits, the operating system receives data. Used by one thread.
 */
final class SilenceClock {

    static final long PERIOD_NANOS = Duration.ofSeconds(1).toNanos();
    private static final Path SCHEDULER = Path.of("/proc/thread-self/schedstat");

    private final LongSupplier clock;
    private final LongSupplier runnable;
    private long last;
    private long runnableAtLast;

    /**
     * @param clock    current time in nanoseconds
     * @param runnable time that the calling thread has run or has waited for a core, in nanoseconds; always 0 if
     *                 unknown
     */
    SilenceClock(LongSupplier clock, LongSupplier runnable) {
        this.clock = clock;
        this.runnable = runnable;
        last = clock.getAsLong();
    }

    /** Returns the nanoseconds of silence to count in a check at this moment; 0 if no check is due. */
    long due() {
        long elapsed = clock.getAsLong() - last;
        if (elapsed < PERIOD_NANOS) {
            return 0;
        }
        long ran = runnable.getAsLong();
        long counted = Math.min(elapsed, 2 * PERIOD_NANOS + ran - runnableAtLast);
        last += elapsed;
        runnableAtLast = ran;
        return counted;
    }

    /**
     * Returns the time that this thread has run or has waited for a core; 0 if the operating system does not count it.
     */
    static long runnableNanos() {
        try {
            String[] fields = Files.readString(SCHEDULER).split(" ");
            return Long.parseLong(fields[0]) + Long.parseLong(fields[1]);
        } catch (IOException | RuntimeException unknown) {
            return 0;
        }
    }
}
