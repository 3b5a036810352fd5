package org.millrace.agent;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.millrace.foreign.Words;

/**
 * Agent with passes that a waiting thread can run. While no thread waits, the agent's own thread runs them. This class
 * suits machines without a free core. On such a machine, a small operation takes ten times as long if two threads
 * compete for one core and wake each other.
 *
 * <p>
 * The turn is the exclusive right to run passes:
 *
 * <pre>
 *   FREE ──compareAndSet──▶ TAKEN     The thread takes the turn and runs passes. It writes plain fields, and then sets
 *        ◀───setVolatile──            FREE. The next thread sees these fields after its compareAndSet. The agent's
 *                                     fields therefore need no further protection.
 *   FREE ──compareAndSet──▶ CLOSED    The agent's own thread closes the turn permanently.
 * </pre>
 *
 * At most one waiting thread is the helper, which runs passes. Each other waiting thread, and each virtual thread,
 * parks in {@link #await}. The pass that completes the result of a parked thread unparks that thread. If only parked
 * threads wait, the agent's own thread runs the passes. The agent thus has at most one polling thread, and other
 * waiting threads cost no core time. A virtual thread never runs passes: a pass and a sleep between two passes make
 * native calls, which pin the carrier thread.
 *
 * <p>
 * While a helper exists, the agent's own thread leaves the turn to the helper, and parks for short times (naps). The
 * agent's own thread runs passes again when the helper has left. This object is both the agent of the
 * {@link AgentRunner} and its idle strategy.
 */
public final class HelpedAgent implements Agent, IdleStrategy {

    private static final int FREE = 0;
    private static final int TAKEN = 1;
    private static final int CLOSED = 2;

    /** Number of times that a helper yields while it waits for the turn. After these yields, the helper parks. */
    private static final int YIELDS = 10;
    /**
     * Longest park of a helper that waits for the turn, in nanoseconds. The thread that leaves the turn unparks the
     * helper.
     */
    private static final long TURN_NANOS = 10_000_000;
    /** Longest park of other waiting threads, in nanoseconds. The thread that completes the result unparks them. */
    static final long RESULT_NANOS = 100_000_000;
    /**
     * First nap of the agent's own thread while a helper runs the passes, in nanoseconds. Each further nap is twice as
     * long.
     */
    private static final long FIRST_NAP_NANOS = 50_000;

    private static final VarHandle TURN = Words.field(MethodHandles.lookup(), "turn", int.class);
    private static final VarHandle VISITS = Words.field(MethodHandles.lookup(), "visits", long.class);

    private final Agent agent;
    private final IdleStrategy alone;
    private final IdleStrategy helping;
    private final LimitedSleeper helpersSleep;
    private final long longestNapNanos;
    /** 1 while a waiting thread is the helper, 0 otherwise. */
    private final AtomicInteger helper = new AtomicInteger();
    /** Number of waiting threads that do not help. */
    private final AtomicInteger sleepers = new AtomicInteger();
    /** State of the turn. Accessed by {@link #TURN} only. */
    @SuppressWarnings("unused")
    private int turn;
    /**
     * Number of turns that threads other than the agent's own thread have taken. The thread that has the turn writes
     * this number. The agent's own thread reads the number with opaque mode, and compares it with its previous value.
     */
    private long visits;
    /** Helper that waits for the turn; null if none. The thread that leaves the turn unparks the helper. */
    private volatile @Nullable Thread next;
    private volatile @Nullable Thread own;
    /** Whether the agent's own thread is parked, or about to park, because another thread runs the passes. */
    private volatile boolean naps;
    /**
     * Whether the agent's own thread must run the next pass. The thread that has the turn sets this field, and the
     * agent's own thread resets it.
     */
    private volatile boolean ownThreadNeeded;
    private volatile boolean closing;

    // Only the agent's own thread accesses the following three fields.
    private long visitsSeen;
    private boolean helped;
    private long napNanos = FIRST_NAP_NANOS;

    /**
     * @param alone           strategy of the agent's own thread
     * @param helping         strategy of a thread that runs passes while it waits; the strategy sleeps by {@code
     *                        helpersSleep}
     * @param helpersSleep    sleeper whose sleeps end at the deadline of the waiting thread
     * @param longestNapNanos longest nap of the agent's own thread while another thread runs the passes, in nanoseconds
     */
    public HelpedAgent(Agent agent, IdleStrategy alone, IdleStrategy helping, LimitedSleeper helpersSleep,
            long longestNapNanos) {
        this.agent = agent;
        this.alone = alone;
        this.helping = helping;
        this.helpersSleep = helpersSleep;
        this.longestNapNanos = longestNapNanos;
    }

    // Methods of the agent's own thread.

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
        boolean helpedLately = seen != visitsSeen;
        visitsSeen = seen;
        helped = !needed && (helper.get() != 0 || helpedLately && sleepers.get() == 0) || !enter();
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

    /**
     * Called on the agent's own thread after each pass that this thread runs. While another thread runs the passes,
     * this method is called instead of a pass.
     */
    @Override
    public void idle(int workCount) {
        if (helped) {
            alone.pause();
            nap();
        } else {
            napNanos = FIRST_NAP_NANOS;
            alone.idle(workCount);
        }
    }

    private void nap() {
        naps = true;
        // The store to `naps` is volatile, and so are the fields that this condition reads. A thread that needs the
        // agent's own thread changes one of these fields before it reads `naps`. One of the two threads therefore sees
        // the other's store (Dekker).
        if (!ownThreadNeeded && !needsOwnThread()) {
            LockSupport.parkNanos(this, napNanos);
        }
        naps = false;
        napNanos = Math.min(2 * napNanos, longestNapNanos);
    }

    /** Returns whether threads wait for results, and no waiting thread runs the passes. */
    private boolean needsOwnThread() {
        return sleepers.get() > 0 && helper.get() == 0;
    }

    private void wakeOwn() {
        Thread thread = own;
        if (thread == null) {
            return; // The agent's own thread has not begun its first pass, so it does not sleep.
        }
        if (naps) {
            LockSupport.unpark(thread);
        } else {
            alone.wake(thread);
        }
    }

    @Override
    public void wake(Thread thread) {
        wakeOwn();
    }

    @Override
    public void pause() {
        alone.pause();
    }

    @Override
    public void onFailure(Throwable failure) {
        agent.onFailure(failure);
    }

    @Override
    public void onClose() {
        closing = true;
        while (!TURN.compareAndSet(this, FREE, CLOSED)) {
            // Another thread has the turn. Waits until the other thread's current pass has ended.
            Waiting.pause(FIRST_NAP_NANOS);
        }
        agent.onClose();
    }

    // Methods of other threads.

    /**
     * Waits for a result of the agent's passes. Meanwhile, at most one waiting thread runs the passes. Callable from
     * any thread.
     *
     * @param done  condition. This method checks the condition after each pass that the calling thread runs, and after
     *              each park of the calling thread. The pass that makes the condition true must unpark the calling
     *              thread. After the condition has become true, the condition must stay true.
     * @param nanos longest time to wait, in nanoseconds
     * @return false if the time ends before the condition is true, or if the thread is interrupted
     */
    public boolean await(BooleanSupplier done, long nanos) {
        if (done.getAsBoolean()) {
            return true;
        }
        long start = System.nanoTime();
        if (!Thread.currentThread().isVirtual() && sleepers.get() == 0 && helper.compareAndSet(0, 1)) {
            try {
                return helpUntil(done, start, nanos);
            } finally {
                helper.set(0);
                wakeOwnIfNeeded();
            }
        }
        sleepers.incrementAndGet();
        try {
            wakeOwnIfNeeded();
            return sleepUntil(done, start, nanos);
        } finally {
            sleepers.decrementAndGet();
        }
    }

    private void wakeOwnIfNeeded() {
        if (needsOwnThread()) {
            wakeOwn();
        }
    }

    private boolean helpUntil(BooleanSupplier done, long start, long nanos) {
        for (int tries = 0; !done.getAsBoolean(); tries++) {
            if (gaveUp(start, nanos)) {
                return false;
            }
            if (mayEnter()) {
                try {
                    help(done, start, nanos);
                } finally {
                    helping.pause();
                    leave();
                }
                tries = 0;
            } else if (tries < YIELDS) {
                Thread.yield();
            } else {
                next = Thread.currentThread();
                // This thread writes `next` before it reads the turn. The thread that leaves the turn sets FREE before
                // it reads `next`. One of the two threads therefore sees the other thread's store (Dekker).
                if (ownThreadNeeded || (int) TURN.getVolatile(this) != FREE) {
                    LockSupport.parkNanos(this, Math.min(TURN_NANOS, left(start, nanos)));
                }
            }
        }
        return true;
    }

    private boolean mayEnter() {
        return !ownThreadNeeded && enter();
    }

    private boolean sleepUntil(BooleanSupplier done, long start, long nanos) {
        while (!done.getAsBoolean()) {
            if (gaveUp(start, nanos)) {
                return false;
            }
            LockSupport.parkNanos(this, Math.min(RESULT_NANOS, left(start, nanos)));
        }
        return true;
    }

    /**
     * Runs passes, as the thread that has the turn, until the wait ends or the agent's own thread must run the next
     * pass.
     */
    private void help(BooleanSupplier done, long start, long nanos) {
        visits++;
        while (true) {
            int work = pass();
            if (done.getAsBoolean() || closing) {
                return;
            }
            if (ownThreadNeeded) {
                wakeOwn();
                return;
            }
            if (work == 0) {
                long left = left(start, nanos);
                if (left <= 0 || Thread.currentThread().isInterrupted()) {
                    return;
                }
                helpersSleep.limit(left);
            }
            helping.idle(work);
        }
    }

    private static boolean gaveUp(long start, long nanos) {
        return left(start, nanos) <= 0 || Thread.currentThread().isInterrupted();
    }

    /** Returns the remaining time of a wait, in nanoseconds; 0 or less if the time is over. */
    private static long left(long start, long nanos) {
        return nanos - (System.nanoTime() - start);
    }

    /**
     * Runs passes while they do work and the condition is false. Runs no pass if another thread has the turn. Never
     * waits, so the call takes no longer than its passes.
     */
    public void help(BooleanSupplier done) {
        if (!mayEnter()) {
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
        if (ownThreadNeeded || needsOwnThread()) {
            wakeOwn();
        }
    }

    /** Asks the agent's own thread to run the next pass. Called by a pass. */
    public void needOwnThread() {
        ownThreadNeeded = true;
    }

    /** {@return whether the calling thread is the agent's own thread} */
    public boolean isOwnThread() {
        return own == Thread.currentThread();
    }

    // Methods that run a pass, and that take or leave the turn. The turn is the exclusive right to run passes.

    private boolean enter() {
        return TURN.compareAndSet(this, FREE, TAKEN);
    }

    private void leave() {
        TURN.setVolatile(this, FREE);
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
