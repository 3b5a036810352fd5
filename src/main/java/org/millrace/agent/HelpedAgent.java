package org.millrace.agent;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * An agent whose passes are run by the threads that wait for what they do; by its own while none waits. For machines
 * with no core to spare: two threads that take the core from each other, and wake each other, cost a small operation
 * ten times what the work itself does.
 *
 * <pre>
 *   FREE ──compareAndSet──▶ TAKEN     one thread at a time runs passes: it has the turn. What it wrote before it set
 *        ◀───setRelease────           FREE (release), the next one sees (the compareAndSet's acquire): so the agent's
 *                                     fields need no other protection than on one thread
 *   FREE ──compareAndSet──▶ CLOSED    by the own thread, for good
 * </pre>
 *
 * The own thread leaves the turn to those who wait, and sleeps; it looks now and then whether anybody came, and runs
 * passes again when nobody did. It is both the agent that the {@link AgentRunner} runs and the strategy by which that
 * waits.
 */
public final class HelpedAgent implements Agent, IdleStrategy {

    private static final int FREE = 0;
    private static final int TAKEN = 1;
    private static final int CLOSED = 2;

    /** How often a thread that waits offers its core to the one that has the turn, before it sleeps. */
    private static final int YIELDS = 10;
    /** The longest sleep of a thread that waits for the turn: who leaves it wakes one, and need not see all. */
    private static final long RETRY_NANOS = 100_000;
    /** How long the own thread sleeps at first while others do its work; each time twice as long, up to the longest. */
    private static final long FIRST_SLEEP_NANOS = 50_000;

    private static final VarHandle TURN;
    private static final VarHandle VISITS;
    static {
        try {
            MethodHandles.Lookup lookup = MethodHandles.lookup();
            TURN = lookup.findVarHandle(HelpedAgent.class, "turn", int.class);
            VISITS = lookup.findVarHandle(HelpedAgent.class, "visits", long.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private final Agent agent;
    private final IdleStrategy alone;
    /** Of the thread that waits and has the turn. */
    private final IdleStrategy helping;
    private final long longestSleepNanos;
    private final AtomicInteger helpers = new AtomicInteger();
    /** By {@link #TURN} alone. */
    @SuppressWarnings("unused")
    private int turn;
    /** How often others had the turn. Written by the one who has it; the own thread only looks whether it changed. */
    private long visits;
    /** Somebody who waits for the turn. Who leaves it wakes them; to miss one costs {@link #RETRY_NANOS}. */
    private volatile @Nullable Thread next;
    private volatile @Nullable Thread own;
    /** The next thing to do must be done by the own thread. Set by who has the turn, reset by the own thread. */
    private volatile boolean ownThreadNeeded;
    private volatile boolean closing;

    // The own thread's.
    private long visitsSeen;
    private boolean helped;
    private long sleepNanos = FIRST_SLEEP_NANOS;

    /**
     * An agent that nobody runs yet.
     *
     * @param alone             what the own thread does between passes
     * @param helping           what another thread does between the passes that it runs while it waits
     * @param longestSleepNanos how long the own thread sleeps while others do its work
     */
    public HelpedAgent(Agent agent, IdleStrategy alone, IdleStrategy helping, long longestSleepNanos) {
        this.agent = agent;
        this.alone = alone;
        this.helping = helping;
        this.longestSleepNanos = longestSleepNanos;
    }

    // The own thread

    @Override
    public String name() {
        return agent.name();
    }

    @Override
    public int doWork() {
        if (own == null) {
            own = Thread.currentThread();
        }
        boolean needed = ownThreadNeeded;
        long seen = (long) VISITS.getOpaque(this);
        boolean others = helpers.get() > 0 || seen != visitsSeen;
        visitsSeen = seen;
        helped = !needed && others || !enter();
        if (helped) {
            return 0;
        }
        int work;
        try {
            work = pass();
            if (needed && work == 0) {
                ownThreadNeeded = false;
            }
        } finally {
            leave();
        }
        return work;
    }

    /** After a pass of the own thread, or after it found that another one has the turn. */
    @Override
    public void idle(int workCount) {
        if (helped) {
            LockSupport.parkNanos(sleepNanos);
            sleepNanos = Math.min(2 * sleepNanos, longestSleepNanos);
        } else {
            sleepNanos = FIRST_SLEEP_NANOS;
            alone.idle(workCount);
        }
    }

    @Override
    public void onFailure(Throwable failure) {
        agent.onFailure(failure);
    }

    @Override
    public void onClose() {
        closing = true;
        while (!TURN.compareAndSet(this, FREE, CLOSED)) {
            Waiting.pause(RETRY_NANOS); // until the pass that is under way has ended
        }
        agent.onClose();
    }

    // Others

    /**
     * Waits until something is done that the agent's passes bring about, and runs them meanwhile.
     *
     * @param done asked after every pass; true from some time on
     * @return false if the time was over first, or the thread is interrupted
     */
    public boolean await(BooleanSupplier done, long nanos) {
        long start = System.nanoTime();
        helpers.incrementAndGet();
        try {
            for (int tries = 0; !done.getAsBoolean(); tries++) {
                if (gaveUp(start, nanos)) {
                    return false;
                }
                if (!ownThreadNeeded && enter()) {
                    try {
                        help(done, start, nanos);
                    } finally {
                        leave();
                    }
                    tries = 0;
                } else if (tries < YIELDS) {
                    Thread.yield();
                } else {
                    next = Thread.currentThread();
                    LockSupport.parkNanos(this, Math.min(RETRY_NANOS, nanos));
                }
            }
            return true;
        } finally {
            helpers.decrementAndGet();
        }
    }

    /** Runs passes, as the one who has the turn. */
    private void help(BooleanSupplier done, long start, long nanos) {
        visits++;
        while (true) {
            int work = pass();
            if (done.getAsBoolean() || closing) {
                return;
            }
            if (ownThreadNeeded) {
                LockSupport.unpark(own);
                return;
            }
            if (work == 0 && gaveUp(start, nanos)) {
                return;
            }
            helping.idle(work);
        }
    }

    private static boolean gaveUp(long start, long nanos) {
        return System.nanoTime() - start >= nanos || Thread.currentThread().isInterrupted();
    }

    /**
     * Runs passes for as long as they do something and something is still to be done; none if another thread has the
     * turn. Returns soon if passes do.
     */
    public void help(BooleanSupplier done) {
        if (ownThreadNeeded || !enter()) {
            return;
        }
        try {
            visits++;
            while (!done.getAsBoolean() && pass() > 0 && !ownThreadNeeded) {
                continue;
            }
        } finally {
            leave();
        }
        if (ownThreadNeeded) {
            LockSupport.unpark(own);
        }
    }

    /** Says, in a pass, that what comes next must be done by the own thread. */
    public void needOwnThread() {
        ownThreadNeeded = true;
    }

    /** {@return whether the calling thread is the agent's own} */
    public boolean isOwnThread() {
        return own == Thread.currentThread();
    }

    // The turn

    private boolean enter() {
        return TURN.compareAndSet(this, FREE, TAKEN);
    }

    private void leave() {
        TURN.setRelease(this, FREE);
        Thread waiting = next;
        if (waiting != null) {
            next = null;
            LockSupport.unpark(waiting);
        }
    }

    private int pass() {
        try {
            return agent.doWork();
        } catch (Throwable failure) {
            AgentRunner.report(agent, failure);
            return 0;
        }
    }
}
