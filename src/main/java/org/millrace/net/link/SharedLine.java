package org.millrace.net.link;

import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;

/**
 * The outgoing line of a process, which its connections share: each takes it for the time that its bytes need, in the
 * order in which they ask. Safe from any thread.
 */
final class SharedLine {

    /** Ticks a nanosecond: a frame of 64 bytes takes 512 at 1 Tbit/s. */
    static final int TICKS = 1000;
    private static final double TICKS_PER_SECOND = 1e9 * TICKS;

    private final LinkSchedule schedule;
    private final LongSupplier clock;
    private final long opened;
    /** From when the line is free, in ticks since it was opened. */
    private final AtomicLong free = new AtomicLong();

    /** @param clock nanoseconds, from any beginning */
    SharedLine(LinkSchedule schedule, LongSupplier clock) {
        this.schedule = schedule;
        this.clock = clock;
        opened = clock.getAsLong();
    }

    LinkSchedule schedule() {
        return schedule;
    }

    /** {@return ticks since the line was opened} */
    long now() {
        return (clock.getAsLong() - opened) * TICKS;
    }

    LinkShape shape(long now) {
        return schedule.at(now / TICKS);
    }

    /** {@return from when on the line has been up} */
    long upSince(long now) {
        return schedule.upSince(now / TICKS) * TICKS;
    }

    /** {@return from when the line is free} */
    long free() {
        return free.get();
    }

    /**
     * Takes the line.
     *
     * @param earliest when the bytes were there
     * @return when the last of the bytes has left
     */
    long take(long earliest, long bytes, LinkShape shape) {
        long needed = ticks(bytes, shape.bitsPerSecond());
        while (true) {
            long from = free.get();
            long until = Math.max(from, earliest) + needed;
            if (free.compareAndSet(from, until)) {
                return until;
            }
        }
    }

    /** {@return how long bytes take at a rate; none if it is 0, which is no limit} */
    static long ticks(long bytes, double bitsPerSecond) {
        return bitsPerSecond == 0 ? 0 : Math.round(bytes * Byte.SIZE * TICKS_PER_SECOND / bitsPerSecond);
    }
}
