package org.millrace.engine.bootstrap;

import java.time.Duration;
import java.util.concurrent.TimeUnit;

/** A moment by which something has to be done, and how long that was when it was set. */
record Deadline(Duration allowed, long endNanos) {

    /** Longer than any group waits, and far from where {@link System#nanoTime()} differences overflow. */
    private static final Duration LONGEST = Duration.ofDays(10_000);

    static Deadline in(Duration allowed) {
        Duration bounded = allowed.compareTo(LONGEST) > 0 ? LONGEST : allowed;
        return new Deadline(bounded, System.nanoTime() + bounded.toNanos());
    }

    /** This deadline, or one after that time if that is earlier. */
    Deadline orIn(Duration shorter) {
        Deadline other = in(shorter);
        return other.endNanos - endNanos < 0 ? other : this;
    }

    /** Negative once it has passed. */
    long remainingNanos() {
        return endNanos - System.nanoTime();
    }

    boolean expired() {
        return remainingNanos() <= 0;
    }

    /** For a selector: at least 1, because 0 would mean to wait for ever. */
    long remainingMillis() {
        return Math.max(1, TimeUnit.NANOSECONDS.toMillis(remainingNanos() + 999_999));
    }

    /** How long was allowed, for messages. */
    @Override
    public String toString() {
        long millis = allowed.toMillis();
        return millis % 1000 == 0 ? millis / 1000 + " s" : millis + " ms";
    }
}
