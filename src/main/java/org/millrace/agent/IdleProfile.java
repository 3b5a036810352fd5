package org.millrace.agent;

import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.millrace.foreign.CFunction;

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
 *   rank(...)       by the settings   by the settings   10 µs to 50 ms, or the settings'
 *   rankWithoutCore none              4 ms              50 µs to 50 ms, or the settings'
 *   COMPLETION      1,000 times       100 times         10 µs to 1 ms
 *   ROOM            100 times         100 times         10 µs to 1 ms
 * </pre>
 */
public enum IdleProfile {
    /** A program's thread that waits until what it enqueued is complete: soon, or for long. */
    COMPLETION(() -> new Backoff(null, 1_000, 100, 10_000, 1_000_000, Sleeper.PARK, PollingThreads.OF_PROCESS)),
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
    public static IdleStrategy rank(int spins, int yields, long longestNanos, Sleeper sleeper) {
        return new Backoff(null, spins, yields, Math.min(10_000, longestNanos), longestNanos, sleeper,
                PollingThreads.OF_PROCESS);
    }

    /** The same where there is no core for each. */
    public static IdleStrategy rankOnSharedCores(int spins, int yields, long longestNanos, Sleeper sleeper) {
        return new Backoff(System::nanoTime, spins, yields, Math.min(10_000, longestNanos), longestNanos, sleeper,
                PollingThreads.OF_PROCESS);
    }

    /**
     * The same where ranks are more than cores: it yields at once, and not at all for a while after a yield that took
     * long. To a thread that computes, as compilers do, Linux gives the core for milliseconds.
     */
    public static IdleStrategy rankWithoutCore(long longestNanos, Sleeper sleeper) {
        return new TimedIdleStrategy(new TimedIdleStrategy.Scheduler() {
            @Override
            public void park(long nanos) {
                sleeper.sleep(nanos);
            }
        }, 0, 4_000_000, Math.min(50_000, longestNanos), longestNanos);
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
     *
     * <p>
     * With a limit it spins and yields only while it is one of the threads that may poll, and sleeps at once otherwise.
     */
    public static final class Backoff implements IdleStrategy {

        /** A system call takes some 300 ns; two switches of threads take some microseconds. */
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
        /** Whether the limit counts this thread. */
        private boolean counted;

        /**
         * A strategy that begins to spin.
         *
         * @param spins        passes without work after each of which the thread only hints to the core that it spins
         * @param yields       further passes after each of which it offers its core to another thread
         * @param maxParkNanos longest time slept; each sleep is twice as long as the one before up to this
         */
        public Backoff(int spins, int yields, long minParkNanos, long maxParkNanos) {
            this(null, spins, yields, minParkNanos, maxParkNanos, Sleeper.PARK, null);
        }

        /**
         * A strategy that begins to spin.
         *
         * @param nanoClock times yields; null where each thread has a core
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

        /** Returns whether passes are left that it spins or yields through. */
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

        /** How long the next pass without work sleeps; 0 if it does not. */
        long sleepNanos() {
            return polls() ? 0 : parkNanos;
        }

        boolean isShared() {
            return shared;
        }
    }

    /**
     * Spins, then yields, then parks, each for a time: passes cost tens of nanoseconds on one connection and
     * microseconds on many, so that a number of them says little. After the first passes without work it spins more
     * slowly, which halves what an idle thread takes from the other half of its core and from the kernel's locks.
     *
     * <p>
     * A yield comes back within microseconds from threads that yield too. A thread that computes on the same core keeps
     * it until the scheduler's next tick, some 4 ms later. So yields are timed: after one that took long, short parks
     * stand in for yields for a while, since a thread that a timer wakes gets its core back at once. (Linux 6.18, one
     * core shared with a thread that computes, until the answer of a thread on another core: 2,000 us with yields, 33
     * us with short parks. Shared with a thread that yields as well: 3.5 us with yields.) Short parks take the core
     * from that other thread each time: after some of them without work the thread parks for longer, up to a twentieth
     * of the time that it was idle.
     *
     * <p>
     * A thread that spins notices that its core is not its own by the time that is missing between two looks at the
     * clock: the program's threads spin, too, on all cores that they see (OpenMP's between two parallel regions), and
     * wait for the one whose core was taken. It yields at once then, for a while, before it tries to spin again.
     *
     * <p>
     * The longer it was idle, the longer it parks: the first operation after a pause comes late by at most a twentieth
     * of the pause unless {@link #wake} brings the thread back before.
     */
    public static final class TimedIdleStrategy implements IdleStrategy {

        /** Passes between two looks at the clock while it spins or yields; a power of two. */
        static final int CLOCK_INTERVAL = 64;
        /** A yield that takes longer went to a thread that computes. */
        static final long LONG_YIELD_NANOS = 200_000;
        /**
         * Missing between two looks at the clock while it spins: somebody else had the core for a slice of the
         * scheduler.
         */
        static final long LOST_CORE_NANOS = 1_500_000;
        /**
         * How long short parks then stand in for yields, or yields for spinning: each further time doubles it, from the
         * least to the most.
         */
        static final long LEAST_AVOIDANCE_NANOS = 10_000_000;
        static final long MOST_AVOIDANCE_NANOS = 1_000_000_000;
        /**
         * The same after a long yield that stands alone: the JIT compiler takes the core now and then for a
         * millisecond.
         */
        static final long AVOIDANCE_OF_ONE_NANOS = 2_000_000;
        /** Between two that stand alone. */
        static final long ALONE_NANOS = 100_000_000;

        /**
         * Looks at the clock after which spinning is slower: not within the ten microseconds between two small
         * operations.
         */
        private static final int EAGER_LOOKS = 16;
        /** Hints of a slow spin: less than a microsecond. */
        private static final int SLOW_HINTS = 12;
        /**
         * As short as gives the core away: of a timer that is over before the thread has let go (5 us and less) Linux
         * keeps it on its core, for the price of a park.
         */
        static final long SHORT_PARK_NANOS = 20_000;
        /** Short parks without work before longer ones: some 400 microseconds. */
        static final int SHORT_PARKS = 16;
        /**
         * The part of its idle time that it parks: each park takes 20 us of a core on a virtual machine, its timer and
         * the pass with cold caches.
         */
        private static final int PARK_DIVISOR = 20;

        private static final long PR_SET_TIMERSLACK = 29;

        /** What is done after a pass without work. */
        enum Stage {
            SPIN, YIELD, PARK
        }

        /** Clock and scheduler; a test brings its own. */
        interface Scheduler {

            /** Those of the system. */
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

            /** Linux wakes a thread that sleeps for a time up to 50 us late unless it is told otherwise. */
            default void sharpenTimers() {
                if (System.getProperty("os.name").equals("Linux")) {
                    CFunction.named("prctl").call(PR_SET_TIMERSLACK, 1); // a refusal leaves it as it was
                }
            }
        }

        private final Scheduler scheduler;
        private final long spinNanos;
        private final long yieldNanos;
        private final long minParkNanos;
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
        private boolean yieldedLong;
        private boolean sharpTimers;
        private int shortParks;
        private long firstShortPark;
        private long avoidsSince;
        private long avoidanceNanos;

        /**
         * Whether it parks after each pass without work: also between two parks, as a wake that came then would be
         * missed until the next has ended. Written by the thread that idles; read by those that wake it.
         */
        private volatile boolean parks;
        /** Written by those that wake it, reset by the thread that idles. */
        private volatile boolean woken;
        /** Likewise. */
        private volatile boolean forgetful;

        /**
         * A strategy that begins to spin, or to yield if it never spins.
         *
         * @param spinNanos  how long it spins after the last work
         * @param yieldNanos how long after that it offers its core to another thread in every pass
         */
        public TimedIdleStrategy(long spinNanos, long yieldNanos, long minParkNanos, long maxParkNanos) {
            this(Scheduler.SYSTEM, spinNanos, yieldNanos, minParkNanos, maxParkNanos);
        }

        TimedIdleStrategy(Scheduler scheduler, long spinNanos, long yieldNanos, long minParkNanos, long maxParkNanos) {
            if (spinNanos < 0 || yieldNanos < 0 || minParkNanos < 1 || maxParkNanos < minParkNanos) {
                throw new IllegalArgumentException(
                        "idle strategy: spin " + spinNanos + ", yield " + yieldNanos + ", park " + minParkNanos + " to "
                                + maxParkNanos + " ns; none may be negative, and the park times begin at 1");
            }
            this.scheduler = scheduler;
            this.spinNanos = spinNanos;
            this.yieldNanos = yieldNanos;
            this.minParkNanos = minParkNanos;
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
                avoidsSpins = false; // from the next work on
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
            boolean tookLong = after - before > LONG_YIELD_NANOS;
            if (tookLong) {
                boolean alone = !yieldedLong || after - avoidsSince >= ALONE_NANOS + avoidanceNanos;
                avoidanceNanos = alone ? AVOIDANCE_OF_ONE_NANOS
                        : Math.clamp(avoidanceNanos * 2, LEAST_AVOIDANCE_NANOS, MOST_AVOIDANCE_NANOS);
                yieldedLong = true;
                avoidsSince = after;
                if (!sharpTimers) {
                    scheduler.sharpenTimers();
                    sharpTimers = true;
                }
            } else if (avoidsYields) {
                avoidanceNanos = 0;
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
            boolean again = now - lostCoreAt < 2 * MOST_AVOIDANCE_NANOS && spinAvoidanceNanos >= LEAST_AVOIDANCE_NANOS;
            spinAvoidanceNanos = again ? Math.min(spinAvoidanceNanos * 2, MOST_AVOIDANCE_NANOS) : LEAST_AVOIDANCE_NANOS;
            lostCoreAt = now;
            avoidsSpins = true;
            stage = Stage.YIELD;
        }

        private void park() {
            if (forgetful) {
                forgetNow();
                return;
            }
            if (!parks) {
                parks = true;
            }
            long idle = scheduler.nanoTime() - idleSince;
            slept = true;
            scheduler.park(Math.clamp(idle / PARK_DIVISOR, minParkNanos, maxParkNanos));
            if (woken) {
                begin();
            }
        }

        /**
         * Ends a park, or the next one, and lets the thread begin anew, as work is to come. A thread that is about to
         * begin to park may miss it: its first parks are short. Called by any thread.
         */
        @Override
        public void wake(Thread thread) {
            if (parks) {
                woken = true;
                LockSupport.unpark(thread);
            }
        }

        /**
         * What took the core while connections were set up, the JIT compiler above all, is no reason to avoid yields.
         */
        @Override
        public void forget() {
            forgetful = true;
        }

        private void forgetNow() {
            forgetful = false;
            avoidsYields = false;
            yieldedLong = false;
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
