package org.millrace.agent;

import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;

/**
 * Spins, then yields, then parks for longer and longer, as {@link IdleProfile.Backoff} does; but it spins only while
 * nobody else wants the core. A yield from which the thread comes back at once says so; after a longer one, in which
 * another thread ran, it yields right away the next time: that other thread may be the very one that it waits for.
 */
public final class SharedCoreIdleStrategy implements IdleStrategy {

    /** A system call takes some 300 ns; two switches of threads take some microseconds. */
    static final long SWITCHED_NANOS = 1_000;

    private final LongSupplier nanoClock;
    private final int spins;
    private final int yields;
    private final long minParkNanos;
    private final long maxParkNanos;

    private int spun;
    private int yielded;
    private long parkNanos;
    private boolean shared;

    /**
     * A strategy that takes the core for its own until it finds out.
     *
     * @param spins passes without work through which it spins, if the core is its own
     */
    public SharedCoreIdleStrategy(int spins, int yields, long minParkNanos, long maxParkNanos) {
        this(System::nanoTime, spins, yields, minParkNanos, maxParkNanos);
    }

    SharedCoreIdleStrategy(LongSupplier nanoClock, int spins, int yields, long minParkNanos, long maxParkNanos) {
        this.nanoClock = nanoClock;
        this.spins = spins;
        this.yields = yields;
        this.minParkNanos = minParkNanos;
        this.maxParkNanos = maxParkNanos;
        this.parkNanos = minParkNanos;
    }

    @Override
    public void idle(int workCount) {
        if (workCount > 0) {
            spun = 0;
            yielded = 0;
            parkNanos = minParkNanos;
        } else if (!shared && spun < spins) {
            spun++;
            Thread.onSpinWait();
        } else if (yielded < yields) {
            yielded++;
            long before = nanoClock.getAsLong();
            Thread.yield();
            shared = nanoClock.getAsLong() - before > SWITCHED_NANOS;
        } else {
            LockSupport.parkNanos(parkNanos);
            parkNanos = Math.min(parkNanos * 2, maxParkNanos);
        }
    }

    boolean isShared() {
        return shared;
    }
}
