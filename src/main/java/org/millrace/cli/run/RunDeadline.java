package org.millrace.cli.run;

import java.time.Duration;

/** Time limit of a run, and the time of {@link System#nanoTime} at which the limit passes. */
public record RunDeadline(Duration allowed, long nanoTime) {

    public static RunDeadline after(Duration allowed) {
        return new RunDeadline(allowed, System.nanoTime() + allowed.toNanos());
    }

    public boolean passed() {
        return System.nanoTime() - nanoTime >= 0;
    }

    /** Returns the time until this deadline; zero if it has passed. */
    public Duration remaining() {
        return Duration.ofNanos(Math.max(0, nanoTime - System.nanoTime()));
    }

    /** Returns the time until this deadline, but at most the given time. */
    Duration remaining(Duration most) {
        Duration remaining = remaining();
        return remaining.compareTo(most) < 0 ? remaining : most;
    }
}
