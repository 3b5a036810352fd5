package org.millrace.cli.launch;

import java.time.Duration;

/** A moment by which something must have happened. */
public record RunDeadline(long nanoTime) {

    public static RunDeadline after(Duration duration) {
        return new RunDeadline(System.nanoTime() + duration.toNanos());
    }

    /** This one, or one in so long a time, whichever is first. */
    RunDeadline sooner(Duration duration) {
        RunDeadline other = after(duration);
        return other.nanoTime - nanoTime < 0 ? other : this;
    }

    public boolean passed() {
        return System.nanoTime() - nanoTime >= 0;
    }

    /** Zero if it has passed. */
    public Duration remaining() {
        return Duration.ofNanos(Math.max(0, nanoTime - System.nanoTime()));
    }
}
