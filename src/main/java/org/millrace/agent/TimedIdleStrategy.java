package org.millrace.agent;

import java.util.concurrent.locks.LockSupport;
import org.millrace.foreign.CFunction;

/**
 * Spins, then yields, then parks, each for a time: passes cost tens of nanoseconds on one connection and microseconds
 * on many, so that a number of them says little. After the first passes without work it spins more slowly, which halves
 * what an idle thread takes from the other half of its core and from the kernel's locks.
 *
 * <p>
 * A yield comes back within microseconds from threads that yield too. A thread that computes on the same core keeps it
 * until the scheduler's next tick, some 4 ms later. So yields are timed: after one that took long, short parks stand in
 * for yields for a while, since a thread that a timer wakes gets its core back at once. (Linux 6.18, one core shared
 * with a thread that computes, until the answer of a thread on another core: 2,000 us with yields, 33 us with short
 * parks. Shared with a thread that yields as well: 3.5 us with yields.) Short parks take the core from that other
 * thread each time: after some of them without work the thread parks for longer, up to a twentieth of the time that it
 * was idle.
 *
 * <p>
 * A thread that spins notices that its core is not its own by the time that is missing between two looks at the clock:
 * the program's threads spin, too, on all cores that they see (OpenMP's between two parallel regions), and wait for the
 * one whose core was taken. It yields at once then, for a while, before it tries to spin again.
 *
 * <p>
 * The longer it was idle, the longer it parks: the first operation after a pause comes late by at most a twentieth of
 * the pause unless {@link #wake} brings the thread back before.
 */
public final class TimedIdleStrategy implements IdleStrategy {

    /** Passes between two looks at the clock while it spins or yields; a power of two. */
    static final int CLOCK_INTERVAL = 64;
    /** A yield that takes longer went to a thread that computes. */
    static final long LONG_YIELD_NANOS = 200_000;
    /**
     * Missing between two looks at the clock while it spins: somebody else had the core for a slice of the scheduler.
     */
    static final long LOST_CORE_NANOS = 1_500_000;
    /**
     * How long short parks then stand in for yields, or yields for spinning: each further time doubles it, from the
     * least to the most.
     */
    static final long LEAST_AVOIDANCE_NANOS = 10_000_000;
    static final long MOST_AVOIDANCE_NANOS = 1_000_000_000;
    /**
     * The same after a long yield that stands alone: the JIT compiler takes the core now and then for a millisecond.
     */
    static final long AVOIDANCE_OF_ONE_NANOS = 2_000_000;
    /** Between two that stand alone. */
    static final long ALONE_NANOS = 100_000_000;

    /**
     * Looks at the clock after which spinning is slower: not within the ten microseconds between two small operations.
     */
    private static final int EAGER_LOOKS = 16;
    /** Hints of a slow spin: less than a microsecond. */
    private static final int SLOW_HINTS = 12;
    /**
     * As short as gives the core away: of a timer that is over before the thread has let go (5 us and less) Linux keeps
     * it on its core, for the price of a park.
     */
    static final long SHORT_PARK_NANOS = 20_000;
    /** Short parks without work before longer ones: some 400 microseconds. */
    static final int SHORT_PARKS = 16;
    /**
     * The part of its idle time that it parks: each park takes 20 us of a core on a virtual machine, its timer and the
     * pass with cold caches.
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
     * Whether it parks after each pass without work: also between two parks, as a wake that came then would be missed
     * until the next has ended. Written by the thread that idles; read by those that wake it.
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
     * Ends a park, or the next one, and lets the thread begin anew, as work is to come. A thread that is about to begin
     * to park may miss it: its first parks are short. Called by any thread.
     */
    @Override
    public void wake(Thread thread) {
        if (parks) {
            woken = true;
            LockSupport.unpark(thread);
        }
    }

    /** What took the core while connections were set up, the JIT compiler above all, is no reason to avoid yields. */
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
