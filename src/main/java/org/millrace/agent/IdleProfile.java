package org.millrace.agent;

/**
 * How the threads of this house wait, by what they wait for. All spin, then yield, then park for longer and longer; how
 * long follows from who gives up a core for it and how soon the answer may come.
 *
 * <pre>
 *   profile         spins             yields            parks
 *   TAKEOVER_PROXY  4 ms              6 ms              20 to 100 µs
 *   GIN_PROXY       50,000 times      20,000 times      20 to 100 µs
 *   GIN_HOST_PROXY  100 times         1,000 times       20 to 100 µs
 *   rank(...)       by the settings   by the settings   10 µs, up to the settings'
 *   COMPLETION      1,000 times       100 times         10 µs to 1 ms
 *   ROOM            100 times         100 times         10 µs to 1 ms
 * </pre>
 */
public enum IdleProfile {
    /**
     * Proxy threads that serve libnccl's connections. A training step's operations are some milliseconds apart, and a
     * pass may serve one connection or hundreds: timed, not counted.
     */
    TAKEOVER_PROXY {
        @Override
        public IdleStrategy newStrategy() {
            return new TimedIdleStrategy(4_000_000, 6_000_000, 20_000, 100_000);
        }
    },
    /**
     * Proxy threads that serve a GPU's descriptors. A kernel waits for every one: the thread keeps its core for as long
     * as a kernel goes on.
     */
    GIN_PROXY {
        @Override
        public IdleStrategy newStrategy() {
            return new BackoffIdleStrategy(50_000, 20_000, 20_000, 100_000);
        }
    },
    /**
     * Proxy threads that serve the descriptors of an emulated device in the plugin's process: they come from threads
     * that want the same cores.
     */
    GIN_HOST_PROXY {
        @Override
        public IdleStrategy newStrategy() {
            return new BackoffIdleStrategy(100, 1_000, 20_000, 100_000);
        }
    },
    /** A program's thread that waits until what it enqueued is complete: soon, or for long. */
    COMPLETION {
        @Override
        public IdleStrategy newStrategy() {
            return new BackoffIdleStrategy(1_000, 100, FIRST_PARK_NANOS, LAST_PARK_NANOS);
        }
    },
    /** A thread that waits until another one makes room or leaves, and had better give it the core. */
    ROOM {
        @Override
        public IdleStrategy newStrategy() {
            return new BackoffIdleStrategy(100, 100, FIRST_PARK_NANOS, LAST_PARK_NANOS);
        }
    };

    private static final long FIRST_PARK_NANOS = 10_000;
    private static final long LAST_PARK_NANOS = 1_000_000;

    /** A strategy for one thread that begins to spin. */
    public abstract IdleStrategy newStrategy();

    /**
     * A strategy for one of a rank's threads on the emulated device, which may be more than there are cores.
     *
     * @param spins        passes after which it spins
     * @param yields       further passes after which it yields
     * @param maxParkNanos longest time that it sleeps
     */
    public static IdleStrategy rank(int spins, int yields, long maxParkNanos) {
        return new BackoffIdleStrategy(spins, yields, FIRST_PARK_NANOS, Math.max(FIRST_PARK_NANOS, maxParkNanos));
    }
}
