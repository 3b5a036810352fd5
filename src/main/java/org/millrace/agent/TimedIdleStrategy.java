package org.millrace.agent;

import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;

/**
 * Spins, then yields, then parks, each for a time: passes cost tens of nanoseconds on one connection and microseconds
 * on many, so that a number of them says little. After the first passes without work it spins more slowly, which halves
 * what an idle thread takes from the other half of its core and from the kernel's locks.
 */
public final class TimedIdleStrategy implements IdleStrategy {

    /** Passes between two looks at the clock; a power of two. */
    static final int CLOCK_INTERVAL = 64;
    /**
     * Looks at the clock after which spinning is slower: not within the ten microseconds between two small operations.
     */
    private static final int EAGER_LOOKS = 16;
    /** Hints of a slow spin: less than a microsecond. */
    private static final int SLOW_HINTS = 12;

    private final LongSupplier nanoClock;
    private final long spinNanos;
    private final long yieldNanos;
    private final long minParkNanos;
    private final long maxParkNanos;

    private Stage stage = Stage.SPIN;
    private int hints = 1;
    private int passes;
    private long idleSince;
    private long parkNanos;

    /** What is done after a pass without work. */
    enum Stage {
        SPIN, YIELD, PARK
    }

    /**
     * A strategy that begins to spin.
     *
     * @param spinNanos    how long it spins after the last work
     * @param yieldNanos   how long after that it offers its core to another thread in every pass
     * @param minParkNanos first time slept after that
     * @param maxParkNanos longest time slept; each sleep is twice as long as the one before up to this
     */
    public TimedIdleStrategy(long spinNanos, long yieldNanos, long minParkNanos, long maxParkNanos) {
        this(System::nanoTime, spinNanos, yieldNanos, minParkNanos, maxParkNanos);
    }

    TimedIdleStrategy(LongSupplier nanoClock, long spinNanos, long yieldNanos, long minParkNanos, long maxParkNanos) {
        if (spinNanos < 0 || yieldNanos < 0 || minParkNanos < 1 || maxParkNanos < minParkNanos) {
            throw new IllegalArgumentException(
                    "idle strategy: spin " + spinNanos + ", yield " + yieldNanos + ", park " + minParkNanos + " to "
                            + maxParkNanos + " ns; none may be negative, and the park times begin at 1");
        }
        this.nanoClock = nanoClock;
        this.spinNanos = spinNanos;
        this.yieldNanos = yieldNanos;
        this.minParkNanos = minParkNanos;
        this.maxParkNanos = maxParkNanos;
    }

    @Override
    public void idle(int workCount) {
        if (workCount > 0) {
            passes = 0;
            hints = 1;
            stage = Stage.SPIN;
            return;
        }
        switch (stage) {
            case SPIN -> spin();
            case YIELD -> Thread.yield();
            case PARK -> {
                LockSupport.parkNanos(parkNanos);
                parkNanos = Math.min(parkNanos * 2, maxParkNanos);
                return;
            }
        }
        if ((++passes & CLOCK_INTERVAL - 1) == 0) {
            lookAtClock();
        }
    }

    private void spin() {
        for (int i = 0; i < hints; i++) {
            Thread.onSpinWait();
        }
    }

    private void lookAtClock() {
        long now = nanoClock.getAsLong();
        if (passes == CLOCK_INTERVAL) {
            idleSince = now;
        }
        if (passes == CLOCK_INTERVAL * EAGER_LOOKS) {
            hints = SLOW_HINTS;
        }
        long idle = now - idleSince;
        if (idle - spinNanos >= yieldNanos) {
            stage = Stage.PARK;
            parkNanos = minParkNanos;
        } else if (idle >= spinNanos) {
            stage = Stage.YIELD;
        }
    }

    Stage stage() {
        return stage;
    }
}
