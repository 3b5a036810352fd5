package org.millrace.engine.bootstrap;

import java.time.Duration;
import java.util.concurrent.TimeUnit;

/**
 * End of a wait.
 *
 * @param allowed  time that was allowed
 * @param endNanos value of {@link System#nanoTime()} at the end
 * @param setting  name of the setting, for messages; empty if the program gave the time
 */
record Deadline(Duration allowed, long endNanos, String setting) {

    /** Longer than any group waits, and far from where {@link System#nanoTime()} differences overflow. */
    private static final Duration LONGEST = Duration.ofDays(10_000);

    static Deadline in(Duration allowed) {
        return since(System.nanoTime(), allowed);
    }

    /** Returns the moment a time after another moment, a value of {@link System#nanoTime()}. */
    static Deadline since(long nanos, Duration allowed) {
        Duration bounded = allowed.compareTo(LONGEST) > 0 ? LONGEST : allowed;
        return new Deadline(bounded, nanos + bounded.toNanos(), "");
    }

    /** Returns the same deadline with the name of its setting. */
    Deadline of(String name) {
        return new Deadline(allowed, endNanos, name);
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
        return (millis % 1000 == 0 ? millis / 1000 + " s" : millis + " ms")
                + (setting.isEmpty() ? "" : " (" + setting + ")");
    }
}
