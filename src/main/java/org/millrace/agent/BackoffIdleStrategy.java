package org.millrace.agent;

import java.util.concurrent.locks.LockSupport;

/**
 * Spins, then yields, then parks for longer and longer.
 *
 * <p>
 * Spinning answers within nanoseconds but takes a core; yielding lets the other thread of a machine with few cores run,
 * which is often the very thread that is waited for; parking costs a wake-up of some 50 µs and frees the core.
 */
public final class BackoffIdleStrategy implements IdleStrategy {

    private final int spins;
    private final int yields;
    private final long minParkNanos;
    private final long maxParkNanos;

    private int passes;
    private long parkNanos;

    /**
     * A strategy that begins to spin.
     *
     * @param spins        passes without work after each of which the thread only hints to the core that it spins
     * @param yields       further passes after each of which it offers its core to another thread
     * @param minParkNanos first time slept after that
     * @param maxParkNanos longest time slept; each sleep is twice as long as the one before up to this
     */
    public BackoffIdleStrategy(int spins, int yields, long minParkNanos, long maxParkNanos) {
        if (spins < 0 || yields < 0 || minParkNanos < 1 || maxParkNanos < minParkNanos) {
            throw new IllegalArgumentException(
                    "idle strategy: spins " + spins + ", yields " + yields + ", park " + minParkNanos + " to "
                            + maxParkNanos + " ns; none may be negative, and the park times begin at 1");
        }
        this.spins = spins;
        this.yields = yields;
        this.minParkNanos = minParkNanos;
        this.maxParkNanos = maxParkNanos;
        this.parkNanos = minParkNanos;
    }

    @Override
    public void idle(int workCount) {
        if (workCount > 0) {
            passes = 0;
            parkNanos = minParkNanos;
        } else if (passes < spins) {
            passes++;
            Thread.onSpinWait();
        } else if (passes < spins + yields) {
            passes++;
            Thread.yield();
        } else {
            LockSupport.parkNanos(parkNanos);
            parkNanos = Math.min(parkNanos * 2, maxParkNanos);
        }
    }
}
