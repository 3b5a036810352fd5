package org.millrace.agent;

import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Idle strategies of Millrace's threads. All spin, then yield, then park for longer and longer; how long follows from
 * who gives up a core for it and how soon the answer may come.
 *
 * <pre>
 *   profile         spins             yields            parks
 *   takeoverProxy   2 ms, or none     2 or 4 ms         50 µs to 5 ms
 *   ginProxy        50,000 times      20,000 times      20 to 100 µs
 *     on the host   100 times         1,000 times       20 to 100 µs
 *   ginSender       500 µs            none              50 µs to 100 ms
 *   rank(...)       by the settings   by the settings   10 µs, up to the settings'
 *   rankWithoutCore none              4 ms              50 µs, up to the settings'
 *   COMPLETION      1,000 times       100 times         10 µs to 1 ms
 *   ROOM            100 times         100 times         10 µs to 1 ms
 * </pre>
 */
public enum IdleProfile {
    /** A program's thread that waits until what it enqueued is complete: soon, or for long. */
    COMPLETION(() -> new Backoff(1_000, 100, 10_000, 1_000_000)),
    /** A thread that waits until another one makes room or leaves, and had better give it the core. */
    ROOM(() -> new Backoff(100, 100, 10_000, 1_000_000));

    private final Supplier<IdleStrategy> strategies;

    IdleProfile(Supplier<IdleStrategy> strategies) {
        this.strategies = strategies;
    }

    /** A strategy for one thread that begins to spin. */
    public IdleStrategy newStrategy() {
        return strategies.get();
    }

    /**
     * A strategy for a proxy thread that serves libnccl's connections. A pass may serve one connection or hundreds:
     * timed, not counted, unless the user counts. It need not spin until the next operation of a training step, since
     * the thread that enqueues that wakes it, and so does one that waits for this one.
     *
     * @param ownCore      whether nobody else needs the core meanwhile; on a shared one the thread yields at once, as
     *                     the program's own threads do that wait for a GPU
     * @param threshold    passes after which the user wants it to sleep; 0 for never, empty if they do not say
     * @param maxParkNanos the longest sleep that the user wants, if they say so
     */
    public static IdleStrategy takeoverProxy(boolean ownCore, Optional<Integer> threshold,
            Optional<Long> maxParkNanos) {
        if (threshold.isPresent()) {
            int passes = threshold.get() == 0 ? Integer.MAX_VALUE : threshold.get();
            long longest = maxParkNanos.orElse(100_000L);
            return new Backoff(ownCore ? passes : 0, ownCore ? 0 : passes, Math.min(20_000, longest), longest);
        }
        long longest = maxParkNanos.orElse(5_000_000L);
        long shortest = Math.min(50_000, longest);
        return ownCore ? new TimedIdleStrategy(2_000_000, 2_000_000, shortest, longest)
                : new TimedIdleStrategy(0, 4_000_000, shortest, longest);
    }

    /**
     * A strategy for a proxy thread that serves GIN's descriptors. A kernel waits for every one: the thread keeps its
     * core for as long as a kernel goes on.
     *
     * @param onHost       whether they are an emulated device's, in the process of threads that want the same cores
     * @param threshold    passes after which the user wants it to sleep; 0 for never, empty if they do not say
     * @param maxParkNanos the longest sleep that the user wants, if they say so
     */
    public static IdleStrategy ginProxy(boolean onHost, Optional<Integer> threshold, Optional<Long> maxParkNanos) {
        int usual = onHost ? 1_100 : 70_000;
        int passes = threshold.map(set -> set == 0 ? Integer.MAX_VALUE : set).orElse(usual);
        int spins = Math.min(passes, onHost ? 100 : 50_000);
        long longest = maxParkNanos.orElse(100_000L);
        return new Backoff(spins, passes - spins, Math.min(20_000, longest), longest);
    }

    /** A strategy for a thread with a core of its own that writes GIN's frames when it is woken for many. */
    public static IdleStrategy ginSender() {
        return new TimedIdleStrategy(500_000, 0, 50_000, 100_000_000);
    }

    /** A strategy for one of a rank's threads on the emulated device, which may be more than there are cores. */
    public static IdleStrategy rank(int spins, int yields, long maxParkNanos) {
        return new Backoff(spins, yields, 10_000, Math.max(10_000, maxParkNanos));
    }

    /** The same where there is no core for each. */
    public static IdleStrategy rankOnSharedCores(int spins, int yields, long maxParkNanos) {
        return new Backoff(System::nanoTime, spins, yields, 10_000, Math.max(10_000, maxParkNanos));
    }

    /**
     * The same where ranks are more than cores: it yields at once, and not at all for a while after a yield that took
     * long. To a thread that computes, as compilers do, Linux gives the core for milliseconds.
     */
    public static IdleStrategy rankWithoutCore(long maxParkNanos) {
        return new TimedIdleStrategy(0, 4_000_000, Math.min(50_000, maxParkNanos), maxParkNanos);
    }

    /**
     * Spins, then yields, then parks for longer and longer.
     *
     * <p>
     * Spinning answers within nanoseconds but takes a core; yielding lets the other thread of a machine with few cores
     * run, which is often the very thread that is waited for; parking costs a wake-up of some 50 µs and frees the core.
     *
     * <p>
     * With a clock it spins only while nobody else wants the core. A yield from which the thread comes back at once
     * says so; after a longer one, in which another thread ran, it yields right away the next time.
     */
    public static final class Backoff implements IdleStrategy {

        /** A system call takes some 300 ns; two switches of threads take some microseconds. */
        static final long SWITCHED_NANOS = 1_000;

        private final @Nullable LongSupplier nanoClock;
        private final int spins;
        private final int yields;
        private final long minParkNanos;
        private final long maxParkNanos;

        private int spun;
        private int yielded;
        private long parkNanos;
        private boolean shared;

        /**
         * A strategy that begins to spin.
         *
         * @param spins        passes without work after each of which the thread only hints to the core that it spins
         * @param yields       further passes after each of which it offers its core to another thread
         * @param maxParkNanos longest time slept; each sleep is twice as long as the one before up to this
         */
        public Backoff(int spins, int yields, long minParkNanos, long maxParkNanos) {
            this(null, spins, yields, minParkNanos, maxParkNanos);
        }

        /** @param nanoClock times yields; null where each thread has a core */
        Backoff(@Nullable LongSupplier nanoClock, int spins, int yields, long minParkNanos, long maxParkNanos) {
            if (spins < 0 || yields < 0 || minParkNanos < 1 || maxParkNanos < minParkNanos) {
                throw new IllegalArgumentException(
                        "idle strategy: spins " + spins + ", yields " + yields + ", park " + minParkNanos + " to "
                                + maxParkNanos + " ns; none may be negative, and the park times begin at 1");
            }
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
                yieldCore();
            } else {
                LockSupport.parkNanos(parkNanos);
                parkNanos = Math.min(parkNanos * 2, maxParkNanos);
            }
        }

        private void yieldCore() {
            if (nanoClock == null) {
                Thread.yield();
            } else {
                long before = nanoClock.getAsLong();
                Thread.yield();
                shared = nanoClock.getAsLong() - before > SWITCHED_NANOS;
            }
        }

        /** How long the next pass without work sleeps; 0 if it does not. */
        long sleepNanos() {
            return !shared && spun < spins || yielded < yields ? 0 : parkNanos;
        }

        boolean isShared() {
            return shared;
        }
    }
}
