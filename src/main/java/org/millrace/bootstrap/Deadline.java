package org.millrace.bootstrap;

import java.time.Duration;
import java.util.concurrent.TimeUnit;

/**
 * Deadline of a wait.
 *
 * @param allowed  duration of the wait
 * @param endNanos value of {@link System#nanoTime()} at which the wait ends
 * @param setting  name of the setting that determines the duration, for messages; empty if the program passed the
 *                 duration
 */
record Deadline(Duration allowed, long endNanos, String setting) {

    /**
     * Maximum duration of a wait. No group waits that long, and differences of {@link System#nanoTime()} values remain
     * far from an overflow.
     */
    private static final Duration LONGEST = Duration.ofDays(10_000);

    static Deadline in(Duration allowed) {
        return since(System.nanoTime(), allowed);
    }

    /**
     * Returns the deadline that is {@code allowed} after the moment {@code nanos}, a value of
     * {@link System#nanoTime()}.
     */
    static Deadline since(long nanos, Duration allowed) {
        Duration bounded = allowed.compareTo(LONGEST) > 0 ? LONGEST : allowed;
        return new Deadline(bounded, nanos + bounded.toNanos(), "");
    }

    /** Returns a copy of this deadline. In messages, the copy names the given setting. */
    Deadline of(String name) {
        return new Deadline(allowed, endNanos, name);
    }

    /** Returns a new deadline that counts from now and allows the same duration, or {@code least} if that is longer. */
    Deadline again(Duration least) {
        return in(allowed.compareTo(least) < 0 ? least : allowed).of(setting);
    }

    /**
     * Returns this deadline if more than half of its duration remains. Otherwise returns a new deadline. It counts from
     * now and allows half of this deadline's duration, or {@code least} if that is longer.
     */
    Deadline extended(Duration least) {
        Duration half = allowed.dividedBy(2);
        return remainingNanos() > half.toNanos() ? this : new Deadline(half, endNanos, setting).again(least);
    }

    Deadline plus(Duration more) {
        return new Deadline(allowed.plus(more), endNanos + more.toNanos(), setting);
    }

    /** Returns the earlier of two deadlines: this deadline, and a new deadline that is {@code shorter} after now. */
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

    /**
     * Returns the remaining time as a timeout for a selector, in milliseconds. It is at least 1, because 0 means no
     * timeout.
     */
    long remainingMillis() {
        return Math.max(1, TimeUnit.NANOSECONDS.toMillis(remainingNanos() + 999_999));
    }

    /** Returns the duration of the wait and its setting as text, for messages. */
    @Override
    public String toString() {
        long millis = allowed.toMillis();
        return (millis % 1000 == 0 ? millis / 1000 + " s" : millis + " ms")
                + (setting.isEmpty() ? "" : " (" + setting + ")");
    }
}
