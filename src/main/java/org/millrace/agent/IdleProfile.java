package org.millrace.agent;

/**
 * How the threads of this house wait, by what they wait for. All spin, then yield, then park for longer and longer; how
 * long follows from who gives up a core for it and how soon the answer may come.
 *
 * <table>
 * <caption>The profiles</caption>
 * <tr>
 * <th>profile</th>
 * <th>spins</th>
 * <th>yields</th>
 * <th>parks</th>
 * <th>why</th>
 * </tr>
 * <tr>
 * <td>{@link #TAKEOVER_PROXY}</td>
 * <td>4 ms</td>
 * <td>6 ms</td>
 * <td>20 to 100 µs</td>
 * <td>a training step's operations are some milliseconds apart, and a pass may serve one connection or hundreds: timed,
 * not counted</td>
 * </tr>
 * <tr>
 * <td>{@link #GIN_PROXY}</td>
 * <td>50,000</td>
 * <td>20,000</td>
 * <td>20 to 100 µs</td>
 * <td>a kernel on a GPU waits for every descriptor: the thread keeps its core for as long as a kernel goes on</td>
 * </tr>
 * <tr>
 * <td>{@link #GIN_HOST_PROXY}</td>
 * <td>100</td>
 * <td>1,000</td>
 * <td>20 to 100 µs</td>
 * <td>the descriptors come from threads that want the same cores</td>
 * </tr>
 * <tr>
 * <td>{@link #rank}</td>
 * <td>by the settings</td>
 * <td>by the settings</td>
 * <td>10 µs up to the settings'</td>
 * <td>the threads of a rank on the emulated device, which may be more than there are cores</td>
 * </tr>
 * <tr>
 * <td>{@link #COMPLETION}</td>
 * <td>1,000</td>
 * <td>100</td>
 * <td>10 µs to 1 ms</td>
 * <td>a program's thread that waits for an event, a stream or a call of NCCL's: soon, or for long</td>
 * </tr>
 * <tr>
 * <td>{@link #ROOM}</td>
 * <td>100</td>
 * <td>100</td>
 * <td>10 µs to 1 ms</td>
 * <td>a thread that waits until another one makes room or leaves, and had better give it the core</td>
 * </tr>
 * </table>
 */
public enum IdleProfile {
    /** Proxy threads that serve libnccl's connections. */
    TAKEOVER_PROXY {
        @Override
        public IdleStrategy newStrategy() {
            return new TimedIdleStrategy(4_000_000, 6_000_000, 20_000, 100_000);
        }
    },
    /** Proxy threads that serve a GPU's descriptors. */
    GIN_PROXY {
        @Override
        public IdleStrategy newStrategy() {
            return new BackoffIdleStrategy(50_000, 20_000, 20_000, 100_000);
        }
    },
    /** Proxy threads that serve the descriptors of an emulated device in the plugin's process. */
    GIN_HOST_PROXY {
        @Override
        public IdleStrategy newStrategy() {
            return new BackoffIdleStrategy(100, 1_000, 20_000, 100_000);
        }
    },
    /** A program's thread that waits until what it enqueued is complete. */
    COMPLETION {
        @Override
        public IdleStrategy newStrategy() {
            return new BackoffIdleStrategy(1_000, 100, FIRST_PARK_NANOS, LAST_PARK_NANOS);
        }
    },
    /** A thread that waits until another one makes room or leaves. */
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
     * A strategy for one of a rank's threads on the emulated device.
     *
     * @param spins        passes after which it spins
     * @param yields       further passes after which it yields
     * @param maxParkNanos longest time that it sleeps
     */
    public static IdleStrategy rank(int spins, int yields, long maxParkNanos) {
        return new BackoffIdleStrategy(spins, yields, FIRST_PARK_NANOS, Math.max(FIRST_PARK_NANOS, maxParkNanos));
    }
}
