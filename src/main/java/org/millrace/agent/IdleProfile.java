package org.millrace.agent;

import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.millrace.foreign.CFunction;

/**
 * Idle strategies of Millrace's threads. All spin, then yield, then park with increasing durations. The durations
 * depend on the other threads that need the core, and on the required response time.
 *
 * <pre>
 *   profile         spins             yields            parks
 *   takeoverProxy   2 ms, or none     2 or 4 ms         50 µs to 50 ms
 *   ginProxy        50,000 times      20,000 times      20 to 100 µs
 *     on the host   100 times         1,000 times       20 to 100 µs
 *   ginSender       500 µs            none              50 µs to 100 ms
 *   rank(...)       by the settings   by the settings   10 µs to 200 ms, or to a set maximum
 *   rankWithoutCore none              4 ms              50 µs to 200 ms, or to a set maximum
 *   COMPLETION      1,000 times       100 times         10 µs to 1 ms
 *   ROOM            100 times         100 times         10 µs to 1 ms
 * </pre>
 */
public enum IdleProfile {
    /**
     * Profile for a thread of the program that has enqueued work and waits for the work's completion. The wait may be
     * short or long.
     */
    COMPLETION(() -> new Backoff(null, 1_000, 100, 10_000, 1_000_000, Sleeper.PARK, PollingThreads.OF_PROCESS)),
    /**
     * Profile for a thread that waits until another thread makes room or ends its call. The waiting thread should offer
     * its core to the other thread.
     */
    ROOM(() -> new Backoff(100, 100, 10_000, 1_000_000));

    private final Supplier<IdleStrategy> strategies;

    IdleProfile(Supplier<IdleStrategy> strategies) {
        this.strategies = strategies;
    }

    /** Returns a strategy for one thread. The strategy begins with spinning. */
    public IdleStrategy newStrategy() {
        return strategies.get();
    }

    /**
     * Returns a strategy for a proxy thread that serves libnccl's connections. A pass may serve one connection or
     * hundreds. The strategy therefore measures time, and counts passes only if the user sets a count. The proxy thread
     * may sleep before the next operation of a training step, because other threads wake it. A thread that enqueues an
     * operation wakes the proxy thread, and so does a thread that waits for the proxy thread.
     *
     * @param ownCore      whether no other thread needs the core of the proxy thread. On a shared core the thread never
     *                     spins and yields immediately, as the program's own threads do while they wait for a GPU.
     * @param threshold    number of passes without work after which the thread sleeps, set by the user; 0 for never,
     *                     empty if unset
     * @param maxParkNanos longest sleep in nanoseconds, set by the user; empty if unset
     */
    public static IdleStrategy takeoverProxy(boolean ownCore, Optional<Integer> threshold,
            Optional<Long> maxParkNanos) {
        if (threshold.isPresent()) {
            int passes = threshold.get() == 0 ? Integer.MAX_VALUE : threshold.get();
            long longest = maxParkNanos.orElse(100_000L);
            return new Backoff(ownCore ? passes : 0, ownCore ? 0 : passes, Math.min(20_000, longest), longest);
        }
        long longest = maxParkNanos.orElse(50_000_000L);
        long longestQuick = maxParkNanos.orElse(5_000_000L);
        long shortest = Math.min(50_000, longest);
        return new TimedIdleStrategy(TimedIdleStrategy.Scheduler.SYSTEM, ownCore ? 2_000_000 : 0,
                ownCore ? 2_000_000 : 4_000_000, shortest, longestQuick, longest);
    }

    /**
     * Returns a strategy for a proxy thread that serves GIN's descriptors. A kernel waits for each descriptor, so the
     * thread keeps its core while a kernel runs.
     *
     * @param onHost       whether an emulated device writes the descriptors; other threads of its process then need the
     *                     proxy thread's core
     * @param threshold    number of passes without work after which the thread sleeps, set by the user; 0 for never,
     *                     empty if unset
     * @param maxParkNanos longest sleep in nanoseconds, set by the user; empty if unset
     */
    public static IdleStrategy ginProxy(boolean onHost, Optional<Integer> threshold, Optional<Long> maxParkNanos) {
        int usual = onHost ? 1_100 : 70_000;
        int passes = threshold.map(set -> set == 0 ? Integer.MAX_VALUE : set).orElse(usual);
        int spins = Math.min(passes, onHost ? 100 : 50_000);
        long longest = maxParkNanos.orElse(100_000L);
        return new Backoff(spins, passes - spins, Math.min(20_000, longest), longest);
    }

    /**
     * Returns a strategy for the thread that writes GIN's frames when many frames wait. This thread has its own core,
     * and another thread wakes it.
     */
    public static IdleStrategy ginSender() {
        return new TimedIdleStrategy(500_000, 0, 50_000, 100_000_000);
    }

    /** Returns a strategy for one of a rank's threads on the emulated device. Such threads may outnumber the cores. */
    public static IdleStrategy rank(int spins, int yields, long longestNanos, Sleeper sleeper) {
        return new Backoff(null, spins, yields, Math.min(10_000, longestNanos), longestNanos, sleeper,
                PollingThreads.OF_PROCESS);
    }

    /** Returns a strategy for one of a rank's threads if threads share cores. */
    public static IdleStrategy rankOnSharedCores(int spins, int yields, long longestNanos, Sleeper sleeper) {
        return new Backoff(System::nanoTime, spins, yields, Math.min(10_000, longestNanos), longestNanos, sleeper,
                PollingThreads.OF_PROCESS);
    }

    /**
     * Returns the strategy for a rank's thread on a host that has more ranks than cores. The thread never spins. After
     * a long yield, the thread parks for a while instead of yielding. The reason is that Linux may give the core to a
     * computing thread, such as a compiler, for milliseconds during a yield.
     */
    public static IdleStrategy rankWithoutCore(long longestNanos, Sleeper sleeper) {
        return new TimedIdleStrategy(new TimedIdleStrategy.Scheduler() {
            @Override
            public void park(long nanos) {
                sleeper.sleep(nanos);
            }
        }, 0, 4_000_000, Math.min(50_000, longestNanos), longestNanos, longestNanos);
    }

    /**
     * Strategy that spins, then yields, then parks with increasing durations.
     *
     * <p>
     * A spinning thread responds within nanoseconds but occupies a core. On a machine with few cores, a yield lets
     * another thread run, often the very thread whose result is awaited. A park frees the core and costs a wake-up of
     * some 50 µs.
     *
     * <p>
     * With a clock, the strategy spins only while no other thread needs the core. A yield that returns within
     * {@link #SWITCHED_NANOS} shows that no other thread needs the core. During a longer yield, another thread ran. The
     * strategy then does not spin the next time, and yields immediately.
     *
     * <p>
     * With a limit, the thread spins and yields only while it is one of the threads that may poll. Otherwise the thread
     * sleeps immediately.
     */
    public static final class Backoff implements IdleStrategy {

        /**
         * Maximum duration of a yield without a switch of threads, in nanoseconds. A system call takes some 300 ns, and
         * two switches of threads take some microseconds.
         */
        static final long SWITCHED_NANOS = 1_000;

        private final @Nullable LongSupplier nanoClock;
        private final Sleeper sleeper;
        private final @Nullable PollingThreads limit;
        private final int spins;
        private final int yields;
        private final long minParkNanos;
        private final long maxParkNanos;

        private int spun;
        private int yielded;
        private long parkNanos;
        private boolean shared;
        /** Whether this thread counts towards the limit on threads that spin or yield. */
        private boolean counted;

        /**
         * Creates a strategy that begins with spinning.
         *
         * @param spins        number of first passes without work. After each such pass, the thread only executes the
         *                     core's spin hint
         * @param yields       number of further passes without work. After each such pass, the thread yields its core
         *                     to another thread
         * @param maxParkNanos longest sleep in nanoseconds. Each sleep is twice as long as the previous sleep, up to
         *                     this limit.
         */
        public Backoff(int spins, int yields, long minParkNanos, long maxParkNanos) {
            this(null, spins, yields, minParkNanos, maxParkNanos, Sleeper.PARK, null);
        }

        /**
         * Creates a strategy that begins with spinning.
         *
         * @param nanoClock clock that measures yields; null if each thread has a core
         * @param limit     limit on threads that spin or yield; null for none
         */
        Backoff(@Nullable LongSupplier nanoClock, int spins, int yields, long minParkNanos, long maxParkNanos,
                Sleeper sleeper, @Nullable PollingThreads limit) {
            if (spins < 0 || yields < 0 || minParkNanos < 1 || maxParkNanos < minParkNanos) {
                throw new IllegalArgumentException(
                        "idle strategy: spins " + spins + ", yields " + yields + ", park " + minParkNanos + " to "
                                + maxParkNanos + " ns; none may be negative, and the park times begin at 1");
            }
            this.nanoClock = nanoClock;
            this.sleeper = sleeper;
            this.limit = limit;
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
                sleeper.awake();
            } else if (!polls() || !mayPoll()) {
                sleep();
            } else if (!shared && spun < spins) {
                spun++;
                Thread.onSpinWait();
            } else {
                yielded++;
                yieldCore();
            }
        }

        /** Returns whether the strategy spins or yields after the next pass without work. */
        private boolean polls() {
            return !shared && spun < spins || yielded < yields;
        }

        private boolean mayPoll() {
            if (!counted && limit != null) {
                counted = limit.tryAdd();
                return counted;
            }
            return true;
        }

        private void sleep() {
            leaveLimit();
            if (sleeper.sleep(parkNanos)) {
                parkNanos = Math.min(parkNanos * 2, maxParkNanos);
            }
        }

        private void leaveLimit() {
            if (counted) {
                counted = false;
                Objects.requireNonNull(limit).remove();
            }
        }

        @Override
        public void pause() {
            sleeper.awake();
            leaveLimit();
        }

        @Override
        public void wake(Thread thread) {
            sleeper.wake(thread);
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

        /**
         * Returns the duration of the sleep after the next pass without work, in nanoseconds; 0 if the thread does not
         * sleep after that pass.
         */
        long sleepNanos() {
            return polls() ? 0 : parkNanos;
        }

        boolean isShared() {
            return shared;
        }
    }

    /**
     * Strategy that spins, then yields, then parks, each for a limited time. A pass costs tens of nanoseconds on one
     * connection and microseconds on many, so a number of passes is no useful limit. After the first passes without
     * work, the thread spins more slowly. Slow spinning halves the load that an idle thread puts on the core's other
     * hardware thread and on the operating system's locks.
     *
     * <p>
     * A yield returns within microseconds if the other threads on the core also yield. But a computing thread on the
     * core keeps the core until the scheduler's next tick, some 4 ms later. The strategy therefore measures yields.
     * After a long yield, short parks replace yields for a while, because Linux immediately returns the core to a
     * thread that a timer wakes. On Linux 6.18, a thread waited for the answer of a thread on another core. If the
     * waiting thread shared its core with a computing thread, the answer took 2,000 us with yields and 33 us with short
     * parks. If it shared its core with a thread that also yields, the answer took 3.5 us with yields. After each short
     * park, the waiting thread takes the core from the computing thread. After some short parks without work, the
     * waiting thread therefore parks for longer, up to a twentieth of its idle time.
     *
     * <p>
     * Some programs enqueue operations, compute for a millisecond, and then yield until the operations are complete.
     * With short parks, the thread answers such a program later than with yields. If most yields are short, one long
     * yield is therefore followed by only a short period of short parks.
     *
     * <p>
     * A spinning thread detects the loss of its core by a long time between two reads of the clock. Some programs'
     * threads also spin on all cores that they see, for example OpenMP's threads between two parallel regions. All
     * these threads then wait for the one thread of the program that shares a core with Millrace's spinning thread.
     * Millrace's thread therefore yields without spinning for a while, before it tries to spin again.
     *
     * <p>
     * The duration of a park increases with the idle time. A park thus delays the first operation after a pause by at
     * most a twentieth of the pause. {@link #wake} wakes the thread earlier. A proxy thread is woken when an operation
     * is enqueued. Nothing wakes it when the kernel begins, when a CUDA graph is launched again, or when data of a peer
     * arrives. In a ring, the delays of all hosts add up. A proxy thread's parks of more than 5 ms are therefore at
     * most a two-hundredth of the idle time. After such a park, the thread makes as many passes as it would have made
     * with parks of 5 ms. Connections count these passes, and check their peers after some of them.
     */
    public static final class TimedIdleStrategy implements IdleStrategy {

        /** Number of passes between two reads of the clock while the thread spins or yields; a power of two. */
        static final int CLOCK_INTERVAL = 64;
        /** Maximum duration of a yield, in nanoseconds, if no computing thread had the core during the yield. */
        static final long LONG_YIELD_NANOS = 200_000;
        /**
         * Time between two reads of the clock while the thread spins, in nanoseconds. If more time passes, another
         * thread had the core for one of the scheduler's time slices.
         */
        static final long LOST_CORE_NANOS = 1_500_000;
        /**
         * Shortest period of avoidance, in nanoseconds. After long yields, short parks replace the yields for this
         * period. After lost cores, yields replace the spins. Each repetition doubles the period, up to
         * {@link #MAX_AVOIDANCE_NANOS}.
         */
        static final long LEAST_AVOIDANCE_NANOS = 10_000_000;
        static final long MAX_AVOIDANCE_NANOS = 1_000_000_000;
        /**
         * Duration of the period with short parks after a rare long yield, in nanoseconds. A long yield is rare if the
         * short yields since the previous long yield took at least {@value #RARE_BY_SHORT} times as long as it.
         */
        static final long AVOIDANCE_OF_RARE_NANOS = 1_000_000;
        private static final int RARE_BY_SHORT = 4;

        /**
         * Number of reads of the clock after which the thread spins more slowly. The passes until then take longer than
         * the ten microseconds between two small operations.
         */
        private static final int EAGER_LOOKS = 16;
        /** Number of hints to the core after each pass of slow spinning. Together they take less than a microsecond. */
        private static final int SLOW_HINTS = 12;
        /**
         * Duration of a short park, in nanoseconds. A short park is the shortest park that frees the core. The timer of
         * a park of 5 us or less expires before the thread has left its core. Linux then keeps the thread on the core.
         * Such a park costs as much as a longer park, and does not free the core.
         */
        static final long SHORT_PARK_NANOS = 20_000;
        /**
         * Number of short parks without work before longer parks. Together these short parks take some 400
         * microseconds.
         */
        static final int SHORT_PARKS = 16;
        /**
         * Ratio of the idle time to the duration of a park. On a virtual machine, each park costs 20 us of a core, for
         * the timer and for the pass with cold caches.
         */
        private static final int PARK_DIVISOR = 20;
        /** Ratio of the idle time to the duration of a park of more than {@link #maxQuickParkNanos}. */
        private static final int LONG_PARK_DIVISOR = 200;

        private static final long PR_SET_TIMERSLACK = 29;

        /** Action after a pass without work. */
        enum Stage {
            SPIN, YIELD, PARK
        }

        /** Clock and scheduler that the strategy uses. Tests replace them. */
        interface Scheduler {

            /** Clock and scheduler of the system. */
            Scheduler SYSTEM = new Scheduler() {};

            default long nanoTime() {
                return System.nanoTime();
            }

            default void yieldCore() {
                Thread.yield();
            }

            default void park(long nanos) {
                LockSupport.parkNanos(nanos);
            }

            /** Makes timed sleeps precise. By default Linux wakes a thread from such a sleep up to 50 us late. */
            default void sharpenTimers() {
                if (System.getProperty("os.name").equals("Linux")) {
                    // If the system call fails, timed sleeps stay imprecise.
                    CFunction.named("prctl").call(PR_SET_TIMERSLACK, 1);
                }
            }
        }

        private final Scheduler scheduler;
        private final long spinNanos;
        private final long yieldNanos;
        private final long minParkNanos;
        /** Longest park that may be 1/{@link #PARK_DIVISOR} of the idle time, in nanoseconds. */
        private final long maxQuickParkNanos;
        private final long maxParkNanos;

        private Stage stage;
        private int hints = 1;
        private int passes;
        private long idleSince;

        private long lastLook;

        private boolean slept;
        private boolean avoidsSpins;
        private long lostCoreAt;
        private long spinAvoidanceNanos;

        private boolean avoidsYields;
        /** Total duration of the short yields since the last long yield, in nanoseconds. */
        private long shortYieldNanos;
        private boolean sharpTimers;
        private int shortParks;
        private long firstShortPark;
        /** Number of passes to make without a park, after a park of more than {@link #maxQuickParkNanos}. */
        private int owedPasses;
        private long avoidsSince;
        private long avoidanceNanos;

        /**
         * Whether the idle thread parks after each pass without work. The value is also true between two parks.
         * Otherwise the idle thread would notice a wake between two parks only after the next park. The idle thread
         * writes this field, and the threads that wake the idle thread read it.
         */
        private volatile boolean parks;
        /**
         * Whether another thread has woken the idle thread. Written by the waking threads, reset by the idle thread.
         */
        private volatile boolean woken;
        /**
         * Whether the idle thread must discard its observations. Written by other threads, reset by the idle thread.
         */
        private volatile boolean forgetful;

        /**
         * Creates a strategy that begins with spinning, or with yielding if it never spins.
         *
         * @param spinNanos  duration of the spinning after the last work, in nanoseconds; 0 to never spin
         * @param yieldNanos duration of the yielding after the spinning, in nanoseconds; meanwhile the thread offers
         *                   its core to another thread after every pass
         */
        public TimedIdleStrategy(long spinNanos, long yieldNanos, long minParkNanos, long maxParkNanos) {
            this(Scheduler.SYSTEM, spinNanos, yieldNanos, minParkNanos, maxParkNanos, maxParkNanos);
        }

        /**
         * Creates a strategy with long parks that grow more slowly than its other parks.
         *
         * @param maxQuickParkNanos longest park that may be a twentieth of the idle time, in nanoseconds. Longer parks
         *                          are at most a two-hundredth of that time
         */
        TimedIdleStrategy(Scheduler scheduler, long spinNanos, long yieldNanos, long minParkNanos,
                long maxQuickParkNanos, long maxParkNanos) {
            if (spinNanos < 0 || yieldNanos < 0 || minParkNanos < 1 || maxParkNanos < minParkNanos
                    || maxQuickParkNanos < 1) {
                throw new IllegalArgumentException(
                        "idle strategy: spin " + spinNanos + ", yield " + yieldNanos + ", park " + minParkNanos + " to "
                                + maxParkNanos + " ns; none may be negative, and the park times begin at 1");
            }
            this.scheduler = scheduler;
            this.spinNanos = spinNanos;
            this.yieldNanos = yieldNanos;
            this.minParkNanos = minParkNanos;
            this.maxQuickParkNanos = maxQuickParkNanos;
            this.maxParkNanos = maxParkNanos;
            this.stage = firstStage();
        }

        private Stage firstStage() {
            return spinNanos > 0 ? Stage.SPIN : Stage.YIELD;
        }

        @Override
        public boolean slept() {
            return slept;
        }

        @Override
        public void idle(int workCount) {
            slept = false;
            if (workCount > 0) {
                begin();
                return;
            }
            switch (stage) {
                case SPIN -> spin();
                case YIELD -> yieldCore();
                case PARK -> {
                    park();
                    return;
                }
            }
            if ((++passes & CLOCK_INTERVAL - 1) == 0) {
                lookAtClock();
            }
        }

        private void begin() {
            if (parks) {
                parks = false;
                woken = false;
            }
            passes = 0;
            hints = 1;
            shortParks = 0;
            owedPasses = 0;
            stage = avoidsSpins ? Stage.YIELD : firstStage();
        }

        private void spin() {
            for (int i = 0; i < hints; i++) {
                Thread.onSpinWait();
            }
        }

        private void yieldCore() {
            if (forgetful) {
                forgetNow();
            }
            long before = scheduler.nanoTime();
            if (avoidsSpins && before - lostCoreAt >= spinAvoidanceNanos) {
                // The avoidance of spins is over. The thread spins again after the next work.
                avoidsSpins = false;
            }
            if (avoidsYields && before - avoidsSince < avoidanceNanos) {
                if (shortParks == 0) {
                    firstShortPark = before;
                }
                if (++shortParks > SHORT_PARKS) {
                    idleSince = firstShortPark;
                    stage = Stage.PARK;
                }
                scheduler.park(SHORT_PARK_NANOS);
                slept = true;
                return;
            }
            scheduler.yieldCore();
            long after = scheduler.nanoTime();
            long took = after - before;
            boolean tookLong = took > LONG_YIELD_NANOS;
            if (tookLong) {
                avoidanceNanos = shortYieldNanos >= RARE_BY_SHORT * took ? AVOIDANCE_OF_RARE_NANOS
                        : Math.clamp(avoidanceNanos * 2, LEAST_AVOIDANCE_NANOS, MAX_AVOIDANCE_NANOS);
                shortYieldNanos = 0;
                avoidsSince = after;
                if (!sharpTimers) {
                    scheduler.sharpenTimers();
                    sharpTimers = true;
                }
            } else {
                shortYieldNanos += took;
                if (avoidsYields) {
                    avoidanceNanos = 0;
                }
            }
            avoidsYields = tookLong;
        }

        private void lookAtClock() {
            long now = scheduler.nanoTime();
            if (passes == CLOCK_INTERVAL) {
                idleSince = now;
            } else if (stage == Stage.SPIN && now - lastLook >= LOST_CORE_NANOS) {
                yieldFrom(now);
            }
            lastLook = now;
            if (passes == CLOCK_INTERVAL * EAGER_LOOKS) {
                hints = SLOW_HINTS;
            }
            long idle = now - idleSince;
            if (idle - spinNanos >= yieldNanos) {
                stage = Stage.PARK;
            } else if (idle >= spinNanos) {
                stage = Stage.YIELD;
            }
        }

        private void yieldFrom(long now) {
            boolean again = now - lostCoreAt < 2 * MAX_AVOIDANCE_NANOS && spinAvoidanceNanos >= LEAST_AVOIDANCE_NANOS;
            spinAvoidanceNanos = again ? Math.min(spinAvoidanceNanos * 2, MAX_AVOIDANCE_NANOS) : LEAST_AVOIDANCE_NANOS;
            lostCoreAt = now;
            avoidsSpins = true;
            stage = Stage.YIELD;
        }

        private void park() {
            if (forgetful) {
                forgetNow();
                return;
            }
            if (woken) {
                begin();
                return;
            }
            if (owedPasses > 0) {
                owedPasses--;
                return;
            }
            if (!parks) {
                parks = true;
            }
            long idle = scheduler.nanoTime() - idleSince;
            slept = true;
            long park = Math.min(idle / PARK_DIVISOR, Math.max(maxQuickParkNanos, idle / LONG_PARK_DIVISOR));
            park = Math.clamp(park, minParkNanos, maxParkNanos);
            owedPasses = (int) ((park - 1) / maxQuickParkNanos);
            scheduler.park(park);
            if (woken) {
                begin();
            }
        }

        /**
         * Ends the current or the next park, because work follows. The thread then spins or yields again before it
         * parks. A thread that is about to begin its parks may miss the call, but its first parks are short. Callable
         * from any thread.
         */
        @Override
        public void wake(Thread thread) {
            if (parks) {
                woken = true;
                LockSupport.unpark(thread);
            }
        }

        /**
         * Discards the observed long yields and lost cores. Threads that took the core during the setup of connections,
         * above all the JIT compiler, are no reason to avoid yields.
         */
        @Override
        public void forget() {
            forgetful = true;
        }

        private void forgetNow() {
            forgetful = false;
            avoidsYields = false;
            avoidanceNanos = 0;
            avoidsSpins = false;
            spinAvoidanceNanos = 0;
            shortParks = 0;
            begin();
        }

        Stage stage() {
            return stage;
        }
    }
}
