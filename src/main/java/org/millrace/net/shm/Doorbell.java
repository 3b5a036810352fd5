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
 * Wakes a rank's threads that sleep between two passes. Other ranks of the host do so when they have stored into memory
 * that the rank polls. Other threads of its process do so when they have work for it. Its word is the first of the
 * rank's {@link SharedHeap}, which the other ranks map, or of the process's own memory.
 *
 * <pre>
 *   word    bits 8 to 31   number of wakes
 *           bits 0 to 7    number of threads that have announced to sleep, 0 behind a wake
 *
 *   thread that sleeps               thread that did something
 *   adds itself to the word          stores into common memory
 *   full fence                       full fence
 *   a last pass, without work        reads the word; if threads have announced to sleep, counts a wake and wakes them
 *   sleeps unless it was woken
 * </pre>
 *
 * One of the two fences comes first. If it is the sleeper's, the other thread sees its announcement; else the last pass
 * sees the store (Dekker). The kernel compares the word again before a thread sleeps (futex). A word that another
 * process has damaged only costs a sleep its wake, because each sleep has a bound.
 */
public final class Doorbell implements AutoCloseable {

    private static final VarHandle WORD = ValueLayout.JAVA_INT.varHandle();
    private static final int WAKE = 1 << 8;
    private static final int SLEEPERS = WAKE - 1;

    /** First sleep of a thread that shares its core, in nanoseconds. Each further one is twice as long. */
    private static final long FIRST_SLEEP_NANOS = 250_000;

    private static final long FUTEX_WAIT = 0;
    private static final long FUTEX_WAKE = 1;
    /** Number of the system call; 0 if unknown. */
    private static final long FUTEX = switch (System.getProperty("os.arch")) {
        case "amd64" -> 202;
        case "aarch64" -> 98;
        default -> 0;
    };

    /** Linked when a thread sleeps or wakes another for the first time. */
    private static final class SystemCall {
        static final CFunction ENTRY = CFunction.named("syscall");

        private SystemCall() {}
    }

    private final MemorySegment word;
    /** Words of the ranks that this rank wakes, by the name of their heap. */
    private final Map<String, SharedMemory.Mapping> mapped = new HashMap<>();
    /** The same words; replaced when one is added. */
    private volatile MemorySegment[] peers = {};
    private final AtomicInteger silent = new AtomicInteger();
    /** Whether the rank has nothing in flight, so that no silent peer can delay it. */
    private volatile boolean quiet;

    /** A doorbell that no other process can ring. */
    public Doorbell() {
        this(Arena.ofAuto().allocate(ValueLayout.JAVA_INT));
    }

    Doorbell(MemorySegment word) {
        this.word = word;
    }

    /**
     * Returns a way to sleep until the rank is woken, for one of its threads.
     *
     * @param silentNanos longest sleep while something is in flight that may depend on a peer that does not wake the
     *                    rank
     */
    public Sleeper sleeper(long silentNanos) {
        return FUTEX == 0 ? nanos -> Sleeper.PARK.sleep(Math.min(nanos, silentNanos)) : new WordSleeper(silentNanos);
    }

    /**
     * Returns a strategy for a thread that shares its core: it polls little.
     *
     * @param otherwise    strategy while the rank waits for something that does not wake it, which sleeps by the
     *                     sleeper
     * @param longestNanos longest sleep
     */
    public IdleStrategy strategy(IdleStrategy otherwise, Sleeper sleeper, long longestNanos) {
        return strategy(otherwise, sleeper, Math.min(FIRST_SLEEP_NANOS, longestNanos), longestNanos);
    }

    IdleStrategy strategy(IdleStrategy otherwise, Sleeper sleeper, long firstNanos, long longestNanos) {
        return FUTEX == 0 ? otherwise : new SleepStrategy(otherwise, sleeper, firstNanos, longestNanos);
    }

    /**
     * Adds another rank to wake.
     *
     * @param heap {@link SharedHeap#name} of the rank's heap, bytes of another process
     */
    public synchronized void reach(String heap) {
        if (!mapped.containsKey(heap)) {
            SharedMemory.Mapping page = SharedHeap.openFirstPage(heap);
            mapped.put(heap, page);
            peers = mapped.values().stream().map(SharedMemory.Mapping::segment).toArray(MemorySegment[]::new);
        }
    }

    /** Changes the number of connections that do not wake this rank. */
    public void addSilent(int connections) {
        silent.addAndGet(connections);
        wakeOwner();
    }

    /** Returns whether a thread has announced to sleep, so that the pass under way is its last. Any thread. */
    public boolean isAnnounced() {
        return ((int) WORD.getVolatile(word, 0L) & SLEEPERS) != 0;
    }

    /** States, in the last pass before a sleep, whether nothing is in flight. */
    public void setQuiet(boolean quiet) {
        this.quiet = quiet;
    }

    /** Wakes the sleeping threads of peers, after a pass that did work for some of them. */
    public void wakePeers() {
        MemorySegment[] all = peers;
        if (all.length > 0) {
            VarHandle.fullFence(); // pairs with the atomic addition of WordSleeper.announce
            for (MemorySegment peer : all) {
                wake(peer);
            }
        }
    }

    /** Wakes this rank's sleeping threads, from another thread of its process. */
    public void wakeOwner() {
        VarHandle.fullFence(); // pairs with the atomic addition of WordSleeper.announce
        wake(word);
    }

    /** Returns the bound of a sleep of a number of nanoseconds. */
    long bound(long nanos, long silentNanos) {
        return silent.get() > 0 && !quiet ? Math.min(nanos, silentNanos) : nanos;
    }

    private static void wake(MemorySegment word) {
        int now;
        while (((now = (int) WORD.getOpaque(word, 0L)) & SLEEPERS) != 0) {
            if (WORD.compareAndSet(word, 0L, now, (now & ~SLEEPERS) + WAKE)) {
                SystemCall.ENTRY.call(FUTEX, word.address(), FUTEX_WAKE, Integer.MAX_VALUE);
            }
        }
    }

    /** Unmaps the other ranks' words. Called when no thread of this rank runs. */
    @Override
    public synchronized void close() {
        peers = new MemorySegment[0];
        mapped.values().forEach(SharedMemory.Mapping::close);
        mapped.clear();
    }

    /** Sleeps while the word counts no wake since the announcement. */
    private final class WordSleeper implements Sleeper {

        private final long silentNanos;
        private final MemorySegment time = Arena.ofAuto().allocate(ValueLayout.JAVA_LONG, 2); // struct timespec
        private boolean announced;
        /** The word's number of wakes when the thread announced that it sleeps. */
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
            VarHandle.fullFence(); // the last pass follows the announcement
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

    /** Yields for some tens of microseconds, then sleeps. */
    private final class SleepStrategy implements IdleStrategy {

        /**
         * Number of passes without work before the thread sleeps; the thread offers its core after each. They take some
         * tens of microseconds. A switch of threads is cheaper than a sleep and a wake. On a virtual machine, an idle
         * core needs tens of microseconds to become available again.
         */
        private static final int YIELDS = 100;
        /** A longer yield went to a computing thread, such as a compiler, which keeps a core for milliseconds. */
        private static final long LONG_YIELD_NANOS = 1_000_000;
        /**
         * Minimum time after a long yield in which the thread sleeps at once and does not yield, in nanoseconds. Other
         * threads cannot delay a sleep. Each further long yield doubles the time.
         */
        private static final long LEAST_AVOIDANCE_NANOS = 10_000_000;
        private static final long MOST_AVOIDANCE_NANOS = 100_000_000;

        private final IdleStrategy otherwise;
        private final Sleeper sleeper;
        private final long firstNanos;
        private final long longestNanos;
        private int passes;
        private long longYield;
        private long avoidanceNanos;
        private long sleepNanos;
        private boolean slept;

        SleepStrategy(IdleStrategy otherwise, Sleeper sleeper, long firstNanos, long longestNanos) {
            this.otherwise = otherwise;
            this.sleeper = sleeper;
            this.longestNanos = longestNanos;
            this.firstNanos = firstNanos;
            this.sleepNanos = firstNanos;
        }

        @Override
        public void idle(int workCount) {
            slept = false;
            if (workCount > 0) {
                sleeper.awake();
                passes = 0;
                sleepNanos = firstNanos;
            }
            if (silent.get() > 0) {
                otherwise.idle(workCount);
                slept = otherwise.slept();
            } else if (workCount == 0) {
                if (passes < YIELDS && yieldCore()) {
                    passes++;
                } else if (sleeper.sleep(sleepNanos)) {
                    sleepNanos = Math.min(2 * sleepNanos, longestNanos);
                    slept = true;
                } else {
                    passes = YIELDS; // the pass after the announcement is the last
                }
            }
        }

        /** Returns false if the thread should sleep instead. */
        private boolean yieldCore() {
            long before = System.nanoTime();
            if (avoidanceNanos > 0 && before - longYield < avoidanceNanos) {
                return false;
            }
            Thread.yield();
            long after = System.nanoTime();
            if (after - before > LONG_YIELD_NANOS) {
                boolean again = before - longYield < 2 * MOST_AVOIDANCE_NANOS;
                avoidanceNanos = again ? Math.clamp(2 * avoidanceNanos, LEAST_AVOIDANCE_NANOS, MOST_AVOIDANCE_NANOS)
                        : LEAST_AVOIDANCE_NANOS;
                longYield = after;
            }
            return true;
        }

        @Override
        public boolean slept() {
            return slept;
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
