package org.millrace.trace;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.time.Duration;
import java.util.List;

/** Determines verdicts, and records the elapsed time and the CPU time of the slowest call. */
public final class TimedVerdicts {

    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private final Hang.Reading reading;
    private final Duration quiet;
    private long slowest;
    private long busiest;

    /** @param quiet minimum time without progress after which a connection counts as stalled */
    public TimedVerdicts(Hang.Reading reading, Duration quiet) {
        this.reading = reading;
        this.quiet = quiet;
    }

    public List<Verdict> ask() throws IOException {
        long asked = System.nanoTime();
        long before = THREADS.getCurrentThreadCpuTime();
        List<Verdict> verdicts = Hang.verdicts(reading, quiet);
        busiest = Math.max(busiest, THREADS.getCurrentThreadCpuTime() - before);
        slowest = Math.max(slowest, System.nanoTime() - asked);
        return verdicts;
    }

    @Override
    public String toString() {
        return "asked for " + slowest / 1_000_000 + " ms at the most, of which it had a core for "
                + busiest / 1_000_000;
    }
}
