package org.millrace.net.shm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.millrace.agent.IdleStrategy;
import org.millrace.agent.Sleeper;
import org.millrace.foreign.CFunction;

/**
 * Wakes those threads of a rank that sleep between two passes. Other ranks of the host wake them after a store to
 * memory that the rank polls. Other threads of the same process wake them when they have work for the rank. A doorbell
 * consists of one word. This word is the first word of the rank's {@link SharedHeap}, which the other ranks map.
 * Without such a heap the word is in the process's own memory.
 *
 * <pre>
 *   word    bits 8 to 31   number of wakes
 *           bits 0 to 7    number of threads that have announced a sleep since the last wake
 *
 *   thread that goes to sleep        thread that wakes it
 *   adds itself to the word          stores to common memory
 *   full fence                       full fence
 *   makes a last pass                reads the word. If threads have announced a sleep, it counts a wake, resets
 *   if that pass had no work,        their number to 0, and wakes them
 *   sleeps unless it was woken
 * </pre>
 *
 * One of the two fences is executed first. If the sleeping thread's fence is first, the waking thread reads the
 * announcement. If the waking thread's fence is first, the sleeping thread's last pass reads the store (Dekker's
 * algorithm). The operating system compares the word again before the thread sleeps (futex). If another process has
 * damaged the word, a wake may be lost. The thread then sleeps until its time limit.
 */
public final class Doorbell implements AutoCloseable {

    private static final VarHandle WORD = ValueLayout.JAVA_INT.varHandle();
    private static final int WAKE = 1 << 8;
    private static final int SLEEPERS = WAKE - 1;

    /**
     * Duration of the first sleep of a thread that shares its core. Each further sleep without work doubles the
     * duration.
     */
    private static final long FIRST_SLEEP_NANOS = 250_000;

    private static final long FUTEX_WAIT = 0;
    private static final long FUTEX_WAKE = 1;
    /** Number of the futex system call; 0 if it is not known for this architecture. */
    private static final long FUTEX = switch (System.getProperty("os.arch")) {
        case "amd64" -> 202;
        case "aarch64" -> 98;
        default -> 0;
    };

    /** Link to the system call, made when a thread first sleeps or wakes another thread. */
    private static final class SystemCall {
        static final CFunction ENTRY = CFunction.named("syscall");

        private SystemCall() {}
    }

    private final MemorySegment word;
    /** Doorbell words of the ranks that this rank wakes. The key is the name of the woken rank's heap. */
    private final Map<String, SharedMemory.Mapping> mapped = new HashMap<>();
    /** The words of {@link #mapped}, for access without a lock. A change replaces the array. */
    private volatile MemorySegment[] peers = {};
    private final AtomicInteger silent = new AtomicInteger();
    /**
     * Whether the rank has nothing in flight. Such a rank waits for no peer, so peers that cannot wake it do not
     * shorten its sleep.
     */
    private volatile boolean quiet;

    /** Creates a doorbell in this process's own memory. Other processes cannot ring it. */
    public Doorbell() {
        this(Arena.ofAuto().allocate(ValueLayout.JAVA_INT));
    }

    Doorbell(MemorySegment word) {
        this.word = word;
    }

    /**
     * Returns a sleeper for one of the rank's threads. The sleeper sleeps until the rank is woken.
     *
     * @param silentNanos longest sleep in nanoseconds while operations are in flight and some peers do not wake this
     *                    rank
     */
    public Sleeper sleeper(long silentNanos) {
        return FUTEX == 0 ? nanos -> Sleeper.PARK.sleep(Math.min(nanos, silentNanos)) : new WordSleeper(silentNanos);
    }

    /**
     * Returns an idle strategy that sleeps after a few polls, for a thread that shares its core with other threads.
     *
     * @param otherwise    strategy to use while the rank has connections that do not wake the thread; must sleep by
     *                     means of {@code sleeper}
     * @param longestNanos longest sleep, in nanoseconds
     */
    public IdleStrategy strategy(IdleStrategy otherwise, Sleeper sleeper, long longestNanos) {
        return strategy(otherwise, sleeper, Math.min(FIRST_SLEEP_NANOS, longestNanos), longestNanos);
    }

    IdleStrategy strategy(IdleStrategy otherwise, Sleeper sleeper, long firstNanos, long longestNanos) {
        return FUTEX == 0 ? otherwise : new SleepStrategy(otherwise, sleeper, firstNanos, longestNanos);
    }

    /**
     * Adds another rank that {@link #wakePeers} wakes from now on.
     *
     * @param heap name of the other rank's heap, as {@link SharedHeap#name} returned it in that rank's process
     */
    public synchronized void reach(String heap) {
        if (!mapped.containsKey(heap)) {
            SharedMemory.Mapping page = SharedHeap.openFirstPage(heap);
            mapped.put(heap, page);
            peers = mapped.values().stream().map(SharedMemory.Mapping::segment).toArray(MemorySegment[]::new);
        }
    }

    /**
     * Changes the number of connections to peers that do not wake this rank.
     *
     * @param connections number to add, negative for connections that are closed
     */
    public void addSilent(int connections) {
        silent.addAndGet(connections);
        wakeOwner();
    }

    /**
     * Returns whether a thread has announced a sleep. The thread's current pass is then the last one before the sleep.
     * Callable from any thread.
     */
    public boolean isAnnounced() {
        return ((int) WORD.getVolatile(word, 0L) & SLEEPERS) != 0;
    }

    /** Sets whether the rank has nothing in flight. Called in the last pass before a sleep. */
    public void setQuiet(boolean quiet) {
        this.quiet = quiet;
    }

    /**
     * Wakes the sleeping threads of the other ranks. Called after a pass that stored to memory that the other ranks
     * poll.
     */
    public void wakePeers() {
        MemorySegment[] all = peers;
        if (all.length > 0) {
            // This fence pairs with the fence after the atomic addition in WordSleeper.announce.
            VarHandle.fullFence();
            for (MemorySegment peer : all) {
                wake(peer);
            }
        }
    }

    /** Wakes the sleeping threads of this rank. Called by other threads of this process. */
    public void wakeOwner() {
        // This fence pairs with the fence after the atomic addition in WordSleeper.announce.
        VarHandle.fullFence();
        wake(word);
    }

    /**
     * Returns the time limit for a sleep, in nanoseconds.
     *
     * @param nanos requested duration
     */
    long bound(long nanos, long silentNanos) {
        return silent.get() > 0 && !quiet ? Math.min(nanos, silentNanos) : nanos;
    }

    private static void wake(MemorySegment word) {
        int now;
        do {
            now = (int) WORD.getOpaque(word, 0L);
            if ((now & SLEEPERS) == 0) {
                return;
            }
        } while (!WORD.compareAndSet(word, 0L, now, (now & ~SLEEPERS) + WAKE));
        // A thread that announces a sleep from now on finds the caller's store in its last pass. A further wake would
        // only cost thread switches.
        SystemCall.ENTRY.call(FUTEX, word.address(), FUTEX_WAKE, Integer.MAX_VALUE);
    }

    /** Unmaps the words of the other ranks. Must be called only after all threads of this rank have ended. */
    @Override
    public synchronized void close() {
        peers = new MemorySegment[0];
        mapped.values().forEach(SharedMemory.Mapping::close);
        mapped.clear();
    }

    /**
     * Sleeper of one thread. The first call of {@link #sleep} announces the sleep. The second call sleeps until the
     * word's number of wakes has changed.
     */
    private final class WordSleeper implements Sleeper {

        private final long silentNanos;
        private final MemorySegment time = Arena.ofAuto().allocate(ValueLayout.JAVA_LONG, 2); // struct timespec
        private boolean announced;
        /** Bits 8 to 31 of the word at the announcement: the number of wakes. The other bits are 0. */
        private int wakes;

        WordSleeper(long silentNanos) {
            this.silentNanos = silentNanos;
        }

        @Override
        public boolean sleep(long nanos) {
            if (!announced) {
                announce();
                return false;
            }
            int now = (int) WORD.getVolatile(word, 0L);
            if ((now & ~SLEEPERS) == wakes) {
                long bound = bound(nanos, silentNanos);
                time.setAtIndex(ValueLayout.JAVA_LONG, 0, bound / 1_000_000_000);
                time.setAtIndex(ValueLayout.JAVA_LONG, 1, bound % 1_000_000_000);
                SystemCall.ENTRY.call(FUTEX, word.address(), FUTEX_WAIT, now, time.address());
            }
            awake();
            return true;
        }

        private void announce() {
            announced = true;
            wakes = ((int) WORD.getAndAdd(word, 0L, 1) + 1) & ~SLEEPERS;
            // This fence pairs with the fences in wakePeers and wakeOwner. The loads of the last pass come after the
            // addition.
            VarHandle.fullFence();
        }

        @Override
        public void awake() {
            if (announced) {
                announced = false;
                int now;
                do {
                    now = (int) WORD.getVolatile(word, 0L);
                } while ((now & ~SLEEPERS) == wakes && !WORD.compareAndSet(word, 0L, now, now - 1));
            }
        }

        @Override
        public void wake(Thread thread) {
            wakeOwner();
        }
    }

    /** Strategy that first yields the core for some tens of microseconds, then sleeps. */
    private final class SleepStrategy implements IdleStrategy {

        /**
         * Number of passes without work before the thread sleeps. The thread yields its core after each pass. All these
         * passes together take some tens of microseconds. A switch to another thread is cheaper than a sleep and a
         * wake. On a virtual machine, an idle core also needs tens of microseconds to become available again.
         */
        private static final int YIELDS = 100;
        /**
         * Minimum duration of a long yield, in nanoseconds. During a long yield a computing thread, such as a compiler,
         * has probably used the core. Such a thread keeps a core for milliseconds.
         */
        private static final long LONG_YIELD_NANOS = 1_000_000;
        /**
         * Minimum and maximum length of a sleeping period, in nanoseconds. A long yield starts such a period. During
         * the period the thread sleeps without yielding first. Computing threads delay the end of a yield, but not the
         * end of a sleep. If less than twice the maximum has passed since the previous long yield, the new period is
         * twice as long as the previous period. Otherwise it has the minimum length.
         */
        private static final long LEAST_AVOIDANCE_NANOS = 10_000_000;
        private static final long MAX_AVOIDANCE_NANOS = 100_000_000;

        private final IdleStrategy otherwise;
        private final Sleeper sleeper;
        private final long firstNanos;
        private final long longestNanos;
        private int passes;
        private long longYield;
        private long avoidanceNanos;
        private long sleepNanos;

        SleepStrategy(IdleStrategy otherwise, Sleeper sleeper, long firstNanos, long longestNanos) {
            this.otherwise = otherwise;
            this.sleeper = sleeper;
            this.longestNanos = longestNanos;
            this.firstNanos = firstNanos;
            this.sleepNanos = firstNanos;
        }

        @Override
        public void idle(int workCount) {
            if (workCount > 0) {
                sleeper.awake();
                passes = 0;
                sleepNanos = firstNanos;
            }
            if (silent.get() > 0) {
                otherwise.idle(workCount);
            } else if (workCount == 0) {
                if (passes < YIELDS && yieldCore()) {
                    passes++;
                } else if (sleeper.sleep(sleepNanos)) {
                    sleepNanos = Math.min(2 * sleepNanos, longestNanos);
                } else {
                    // The sleep was only announced. One last pass follows, and then the sleep.
                    passes = YIELDS;
                }
            }
        }

        /** Yields the core once. Returns false, without a yield, during the sleeping period after a long yield. */
        private boolean yieldCore() {
            long before = System.nanoTime();
            if (avoidanceNanos > 0 && before - longYield < avoidanceNanos) {
                return false;
            }
            Thread.yield();
            long after = System.nanoTime();
            if (after - before > LONG_YIELD_NANOS) {
                boolean again = before - longYield < 2 * MAX_AVOIDANCE_NANOS;
                avoidanceNanos = again ? Math.clamp(2 * avoidanceNanos, LEAST_AVOIDANCE_NANOS, MAX_AVOIDANCE_NANOS)
                        : LEAST_AVOIDANCE_NANOS;
                longYield = after;
            }
            return true;
        }

        @Override
        public void wake(Thread thread) {
            sleeper.wake(thread);
        }

        @Override
        public void pause() {
            sleeper.awake();
            otherwise.pause();
        }

        @Override
        public void forget() {
            otherwise.forget();
        }
    }
}
