package org.millrace.cli.perf;

import java.time.Duration;

/** A moment by which something must have happened. */
record Deadline(long nanoTime) {

    static Deadline after(Duration duration) {
        return new Deadline(System.nanoTime() + duration.toNanos());
    }

    /** This one, or one in so long a time, whichever is first. */
    Deadline sooner(Duration duration) {
        Deadline other = after(duration);
        return other.nanoTime - nanoTime < 0 ? other : this;
    }

    boolean passed() {
        return System.nanoTime() - nanoTime >= 0;
    }

    /** Zero if it has passed. */
    Duration remaining() {
        return Duration.ofNanos(Math.max(0, nanoTime - System.nanoTime()));
    }
}
