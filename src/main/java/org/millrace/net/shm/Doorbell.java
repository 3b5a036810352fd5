package org.millrace.net.shm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.millrace.agent.IdleStrategy;
import org.millrace.foreign.CFunction;

/**
 * Where ranks of one host are more than its cores: a rank sleeps until another has done something for it, and takes no
 * core by polling. Its word is the first of its {@link SharedHeap}, which the others map.
 *
 * <pre>
 *   who sleeps                       who did something
 *   word = ASLEEP                    stores into common memory
 *   full fence                       full fence
 *   a last pass, without work        word is ASLEEP: word = AWAKE, wake
 *   sleep while word is ASLEEP
 * </pre>
 *
 * One of the two fences comes first. If it is the sleeper's, the other one sees its word; else the last pass sees what
 * was stored (Dekker). The kernel compares the word again before a thread sleeps (futex).
 */
public final class Doorbell implements AutoCloseable {

    private static final int AWAKE = 0;
    private static final int ASLEEP = 1;
    private static final VarHandle WORD = ValueLayout.JAVA_INT.varHandle();

    /** The first sleep without work, of which each takes twice as long as the one before. */
    private static final long FIRST_SLEEP_NANOS = 250_000;

    private static final long FUTEX_WAIT = 0;
    private static final long FUTEX_WAKE = 1;
    /** The number of the system call; 0 where it is not known. */
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
    /** The ranks' words that are woken from here, by the name of their heap. */
    private final Map<String, SharedMemory.Mapping> mapped = new HashMap<>();
    /** The same; replaced when there is one more. */
    private volatile MemorySegment[] peers = {};
    private final AtomicInteger silent = new AtomicInteger();
    private volatile boolean sleeps;

    Doorbell(MemorySegment word) {
        this.word = word;
    }

    /**
     * A strategy for a thread that polls common memory, and sleeps instead while nothing is there. Several threads of
     * the rank may have one, of which one polls at a time.
     *
     * @param otherwise    what it does while the rank waits for something that does not wake it
     * @param longestNanos how long it sleeps at the most
     */
    public IdleStrategy strategy(IdleStrategy otherwise, long longestNanos) {
        return strategy(otherwise, Math.min(FIRST_SLEEP_NANOS, longestNanos), longestNanos);
    }

    IdleStrategy strategy(IdleStrategy otherwise, long firstNanos, long longestNanos) {
        if (FUTEX == 0) {
            return otherwise;
        }
        sleeps = true;
        return new SleepStrategy(otherwise, firstNanos, longestNanos);
    }

    /** Whether this rank sleeps, so that others have to wake it. */
    public boolean sleeps() {
        return sleeps;
    }

    /**
     * Has another rank woken from here.
     *
     * @param heap what its {@link SharedHeap#name} said, bytes of another process
     */
    public synchronized void reach(String heap) {
        if (!mapped.containsKey(heap)) {
            SharedMemory.Mapping page = SharedHeap.openFirstPage(heap);
            mapped.put(heap, page);
            peers = mapped.values().stream().map(SharedMemory.Mapping::segment).toArray(MemorySegment[]::new);
        }
    }

    /** So many more connections, or fewer, whose other end does not wake this rank. */
    public void addSilent(int connections) {
        silent.addAndGet(connections);
        wakeOwner();
    }

    /** Wakes all who sleep, after a pass that did something for some of them. */
    public void wakePeers() {
        MemorySegment[] all = peers;
        if (all.length > 0) {
            VarHandle.fullFence(); // pairs with that of SleepStrategy.announce
            for (MemorySegment peer : all) {
                wake(peer);
            }
        }
    }

    /** Wakes this rank's own thread, from another one of its process. */
    public void wakeOwner() {
        if (sleeps) {
            VarHandle.fullFence(); // pairs with that of SleepStrategy.announce
            wake(word);
        }
    }

    private static void wake(MemorySegment sleeper) {
        if ((int) WORD.getOpaque(sleeper, 0L) == ASLEEP && WORD.compareAndSet(sleeper, 0L, ASLEEP, AWAKE)) {
            SystemCall.ENTRY.call(FUTEX, sleeper.address(), FUTEX_WAKE, Integer.MAX_VALUE);
        }
    }

    /** Lets go of the other ranks' words, when no thread of this rank runs any more. */
    @Override
    public synchronized void close() {
        peers = new MemorySegment[0];
        mapped.values().forEach(SharedMemory.Mapping::close);
        mapped.clear();
    }

    private final class SleepStrategy implements IdleStrategy {

        /**
         * Passes without work after each of which the core is offered, before the thread sleeps: some tens of
         * microseconds. A switch of threads is cheaper than to sleep and be woken, and on a virtual machine a core that
         * nobody has takes tens of microseconds to come back.
         */
        private static final int YIELDS = 100;
        /**
         * A yield that took longer went to a thread that computes, as compilers do: they keep a core for milliseconds.
         */
        private static final long LONG_YIELD_NANOS = 1_000_000;
        /** For so long it then sleeps at once, which others cannot delay; each time twice as long. */
        private static final long LEAST_AVOIDANCE_NANOS = 10_000_000;
        private static final long MOST_AVOIDANCE_NANOS = 100_000_000;

        private final IdleStrategy otherwise;
        private final long firstNanos;
        private final long longestNanos;
        private final MemorySegment time = Arena.ofAuto().allocate(ValueLayout.JAVA_LONG, 2); // struct timespec
        private int passes;
        private long longYield;
        private long avoidanceNanos;
        private long sleepNanos;
        private boolean announced;
        private boolean slept;

        SleepStrategy(IdleStrategy otherwise, long firstNanos, long longestNanos) {
            this.otherwise = otherwise;
            this.longestNanos = longestNanos;
            this.firstNanos = firstNanos;
            this.sleepNanos = firstNanos;
        }

        @Override
        public void idle(int workCount) {
            slept = false;
            if (workCount > 0) {
                withdraw();
                passes = 0;
                sleepNanos = firstNanos;
            }
            if (silent.get() > 0) {
                withdraw();
                otherwise.idle(workCount);
                slept = otherwise.slept();
            } else if (workCount == 0) {
                await();
            }
        }

        private void await() {
            if (passes < YIELDS && !announced && yieldCore()) {
                passes++;
            } else if (announced) {
                sleep();
            } else {
                announce();
            }
        }

        /** Returns false if it had better sleep. */
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

        private void announce() {
            announced = true;
            WORD.setOpaque(word, 0L, ASLEEP);
            VarHandle.fullFence(); // pairs with those of wakePeers and wakeOwner
        }

        private void withdraw() {
            if (announced) {
                announced = false;
                WORD.setOpaque(word, 0L, AWAKE);
            }
        }

        private void sleep() {
            time.setAtIndex(ValueLayout.JAVA_LONG, 0, sleepNanos / 1_000_000_000);
            time.setAtIndex(ValueLayout.JAVA_LONG, 1, sleepNanos % 1_000_000_000);
            SystemCall.ENTRY.call(FUTEX, word.address(), FUTEX_WAIT, ASLEEP, time.address());
            withdraw();
            sleepNanos = Math.min(2 * sleepNanos, longestNanos);
            slept = true;
        }

        @Override
        public boolean slept() {
            return slept;
        }

        @Override
        public void wake(Thread thread) {
            wakeOwner();
            otherwise.wake(thread);
        }

        @Override
        public void forget() {
            otherwise.forget();
        }
    }
}
