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

    /**
     * Longest allowed time. It is longer than any group waits, and far from an overflow of {@link System#nanoTime()}
     * differences.
     */
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

    /** Returns this deadline, or an earlier one after the given time. */
    Deadline orIn(Duration shorter) {
        Deadline other = in(shorter);
        return other.endNanos - endNanos < 0 ? other : this;
    }

    /** Returns the remaining time in nanoseconds, negative once the deadline has passed. */
    long remainingNanos() {
        return endNanos - System.nanoTime();
    }

    boolean expired() {
        return remainingNanos() <= 0;
    }

    /** Returns the timeout for a selector in milliseconds, at least 1, because 0 means no timeout. */
    long remainingMillis() {
        return Math.max(1, TimeUnit.NANOSECONDS.toMillis(remainingNanos() + 999_999));
    }

    /** Returns the allowed time, for messages. */
    @Override
    public String toString() {
        long millis = allowed.toMillis();
        return (millis % 1000 == 0 ? millis / 1000 + " s" : millis + " ms")
                + (setting.isEmpty() ? "" : " (" + setting + ")");
    }
}
