package org.millrace.cli;

import java.time.Duration;

/** A moment by which something must have happened. */
record RunDeadline(Duration allowed, long nanoTime) {

    static RunDeadline after(Duration allowed) {
        return new RunDeadline(allowed, System.nanoTime() + allowed.toNanos());
    }

    boolean passed() {
        return System.nanoTime() - nanoTime >= 0;
    }

    /** Zero if it has passed. */
    Duration remaining() {
        return Duration.ofNanos(Math.max(0, nanoTime - System.nanoTime()));
    }

    /** What remains of it, but no more than so long. */
    Duration remaining(Duration most) {
        Duration remaining = remaining();
        return remaining.compareTo(most) < 0 ? remaining : most;
    }
}
