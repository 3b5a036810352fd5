package org.millrace.engine;

import java.time.Duration;
import java.util.Optional;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.LL128Line;
import org.millrace.abi.Protocol;
import org.millrace.agent.IdleProfile;
import org.millrace.agent.IdleStrategy;
import org.millrace.agent.Sleeper;
import org.millrace.config.Configuration;
import org.millrace.config.Settings.PayloadCheck;
import org.millrace.config.Settings;
import org.millrace.engine.NetTransport.Unpacking;

/**
 * Final values of the engine's options.
 *
 * @param channels          number of rings; large operations are spread over them
 * @param bufferBytes       size of a connection's buffer in bytes, for all its slots together
 * @param threads           number of polling threads of a rank. A single thread runs device and proxies alternately.
 *                          With two threads, one runs the device and the other runs the proxies
 * @param ownSleepNanos     time that the device's thread sleeps while a waiting thread of the program runs the device,
 *                          in nanoseconds. The device's thread then has no separate core. 0 if waiting threads do not
 *                          run the device
 * @param idle              function that creates the idle strategy of one polling thread; the argument is the sleeper
 *                          for the strategy
 * @param hasCore           whether a polling thread may poll for long before it sleeps; false if there are more ranks
 *                          than cores
 * @param silentSleepNanos  longest sleep of a polling thread if it must also detect events that wake no thread
 * @param wokenSleepNanos   longest sleep of a polling thread that every event wakes
 * @param stallDeadline     maximum time of an operation without any progress
 * @param lateDeadline      maximum time by which a live rank may be late for an operation
 * @param closeDeadline     maximum time that a closing rank waits for the other ranks
 * @param firstStep         initial value of the connections' step counters
 * @param workFifoBytes     size in bytes of the FIFO for work that does not fit into a kernel's arguments
 * @param workArgumentBytes maximum size of a kernel's arguments in bytes
 * @param firstWork         initial value of the FIFO's counters
 * @param ptrThreshold      minimum size of a hop, in bytes, at which collectives over networks use unregistered memory
 *                          of the user in place
 * @param unpacking         settings for kernels that gather received data; null if they do not gather
 * @param check             check of the payloads that pass a network
 */
record EngineOptions(int channels, long bufferBytes, int threads, long ownSleepNanos,
        Function<Sleeper, IdleStrategy> idle, boolean hasCore, long silentSleepNanos, long wokenSleepNanos,
        Duration connectDeadline, Duration stallDeadline, Duration lateDeadline, Duration closeDeadline, long firstStep,
        AlgorithmChoice algorithms, ProtocolChoice protocols, TransferOptions transfers, int workFifoBytes,
        int workArgumentBytes, int firstWork, long ptrThreshold, Optional<Long> registeredThreshold,
        SharedMemoryOptions sharedMemory, @Nullable Unpacking unpacking, PayloadCheck check) {

    /**
     * System properties with the initial values of counters. Only tests of counter wrap-around set them, to the same
     * values on all ranks.
     */
    private static final String FIRST_STEP = "org.millrace.engine.firstStep";
    private static final String FIRST_WORK = "org.millrace.engine.firstWork";

    /** Default number of channels. One channel saturates a machine's loopback, and more channels only add steps. */
    private static final int DEFAULT_CHANNELS = 1;
    /** Number of passes that a polling thread spins before its first yield, if each polling thread has a core. */
    private static final int SPINS = 200;
    /**
     * Number of passes before the first yield if a waiting thread runs the device. This thread may share its core with
     * the peer. The passes take about two microseconds.
     */
    private static final int SHARED_SPINS = 20;

    /**
     * Longest sleep of a thread that no event wakes, in nanoseconds. The sleep may delay the first operation after a
     * pause.
     */
    private static final long SILENT_SLEEP_NANOS = 1_000_000;
    /**
     * Longest sleep of a thread that events wake, in nanoseconds. The thread also wakes when this time has passed,
     * because some events wake no thread. Each timed wake-up takes about 50 us of a core.
     */
    private static final long WOKEN_SLEEP_NANOS = 200_000_000;

    /**
     * Sleep of the device's thread while waiting threads run the device, in nanoseconds. If there are more ranks than
     * cores, the sleep is five times as long, because each pass takes the core from another rank.
     */
    private static final long OWN_SLEEP_NANOS = 400_000;

    /** Returns the options. Values that the user did not set follow from the agreement of the ranks. */
    public static EngineOptions decide(Configuration configuration, Agreement agreement) {
        int cores = Runtime.getRuntime().availableProcessors();
        int coresPerRank = Math.max(1, cores / agreement.ranksOnThisHost());
        int threads = Math.min(2, configuration.get(Settings.THREADS).orElse(coresPerRank));
        boolean coreForEach = threads * agreement.ranksOnThisHost() <= cores;
        boolean helped = (threads + 1) * agreement.ranksOnThisHost() > cores;
        int most = !coreForEach ? 0 : helped ? SHARED_SPINS : SPINS;
        Optional<Long> sleep = configuration.get(Settings.IDLE_SLEEP_MICROS).map(set -> set * 1000L);
        long wokenSleep = sleep.orElse(WOKEN_SLEEP_NANOS);
        return new EngineOptions(agreement.channels(), agreement.bufferBytes(), threads,
                !helped ? 0 : coreForEach ? OWN_SLEEP_NANOS : 5 * OWN_SLEEP_NANOS,
                idle(configuration, most, helped, wokenSleep), polls(configuration, most),
                sleep.orElse(SILENT_SLEEP_NANOS), wokenSleep, configuration.get(Settings.CONNECT_DEADLINE),
                configuration.get(Settings.STALL_DEADLINE), configuration.get(Settings.LATE_DEADLINE),
                configuration.get(Settings.CLOSE_DEADLINE), Long.getLong(FIRST_STEP, 0),
                AlgorithmChoice.of(configuration), ProtocolChoice.of(configuration),
                TransferOptions.of(configuration, agreement.ranks()),
                configuration.get(Settings.WORK_FIFO_BYTES).intValue(),
                configuration.get(Settings.WORK_ARGUMENT_BYTES).intValue(),
                (int) Long.getLong(FIRST_WORK, 0).longValue(), configuration.get(Settings.PTR_THRESHOLD),
                configuration.get(Settings.REGISTERED_THRESHOLD), SharedMemoryOptions.of(configuration),
                configuration.get(Settings.NET_DEVICE_UNPACK).orElse(false)
                        ? new Unpacking(configuration.get(Settings.NET_DEVICE_UNPACK_THRESHOLD))
                        : null,
                configuration.get(Settings.CHECK));
    }

    /**
     * Returns the maximum time that an operation can be without progress before a deadline ends it. In the worst case,
     * three limits pass one after the other: a rank is late, then the ranks connect, and then the operation makes no
     * progress.
     */
    Duration longestOperation() {
        return lateDeadline.plus(connectDeadline).plus(stallDeadline);
    }

    /**
     * Returns the function that creates the idle strategies of the polling threads. If the user has set a number of
     * passes, a thread spins or yields for this number of passes before it sleeps.
     *
     * @param most maximum number of passes that a thread may spin; 0 if there are more ranks than cores
     */
    private static Function<Sleeper, IdleStrategy> idle(Configuration configuration, int most, boolean helped,
            long longest) {
        if (!polls(configuration, most)) {
            return sleeper -> IdleProfile.rankWithoutCore(longest, sleeper);
        }
        int threshold = configuration.get(Settings.IDLE_THRESHOLD);
        int spins = Math.min(most, threshold == 0 ? SPINS : threshold);
        int yields = threshold == 0 ? Integer.MAX_VALUE - spins : Math.max(0, threshold - spins);
        return helped ? sleeper -> IdleProfile.rankOnSharedCores(spins, yields, longest, sleeper)
                : sleeper -> IdleProfile.rank(spins, yields, longest, sleeper);
    }

    private static boolean polls(Configuration configuration, int most) {
        return most > 0 || configuration.ifSet(Settings.IDLE_THRESHOLD).isPresent();
    }

    /** Returns the number of channels that this rank proposes. The group uses the smallest proposal. */
    static int proposedChannels(Configuration configuration) {
        int least = configuration.get(Settings.MIN_CHANNELS).orElse(1);
        int most = configuration.get(Settings.MAX_CHANNELS).orElse(Integer.MAX_VALUE);
        if (least > most) {
            throw new IllegalArgumentException(
                    "NCCL_MIN_NCHANNELS " + least + " is greater than NCCL_MAX_NCHANNELS " + most);
        }
        return Math.min(Math.max(DEFAULT_CHANNELS, least), most);
    }

    /** Returns the size of one slot of protocol Simple, in bytes. */
    long slotBytes() {
        return bufferBytes / ConnectionLayout.SLOTS;
    }

    /**
     * Returns the layout of a connection's memory. An LL128 slot carries as much data as a Simple slot. An LL slot has
     * NCCL's size.
     */
    public ConnectionLayout layout() {
        long unitData = LL128Line.UNIT_LINES * LL128Line.DATA_BYTES;
        long units = (slotBytes() + unitData - 1) / unitData;
        return new ConnectionLayout(ConnectionLayout.DEFAULT.llBytes(),
                ConnectionLayout.SLOTS * units * LL128Line.UNIT_LINES * LL128Line.BYTES, bufferBytes);
    }

    /**
     * Options of memory shared between ranks of one host, and of transports of other jars.
     *
     * @param others         whether transports of other jars precede Millrace's own ({@code NCCL_MY_TRANSPORT_ENABLE})
     * @param refusal        text of the reason why ranks must not share memory; empty if ranks may share memory. The
     *                       reason is a setting that requires a network frame for each step
     * @param p2pDisabled    value of {@code NCCL_P2P_DISABLE}
     * @param p2pCopies      whether the sender's proxy copies the data over P2P; otherwise the sender's device writes
     *                       the data
     * @param shmDisabled    value of {@code NCCL_SHM_DISABLE}
     * @param senderCopies   whether the sender's proxy copies over SHM
     * @param receiverCopies whether the receiver's proxy copies over SHM
     * @param senderMakes    whether the sender creates the memory of SHM; otherwise the receiver creates it
     */
    record SharedMemoryOptions(boolean others, Optional<String> refusal, boolean p2pDisabled, boolean p2pCopies,
            boolean shmDisabled, boolean senderCopies, boolean receiverCopies, boolean senderMakes) {

        private static final int SENDER = 1;
        private static final int RECEIVER = 2;

        public static SharedMemoryOptions of(Configuration configuration) {
            int copies = configuration.get(Settings.SHM_MEMCPY) ? configuration.get(Settings.SHM_MEMCPY_MODE) : 0;
            return new SharedMemoryOptions(configuration.get(Settings.MY_TRANSPORT_ENABLE), refusal(configuration),
                    configuration.get(Settings.P2P_DISABLE), configuration.get(Settings.P2P_MEMCPY),
                    configuration.get(Settings.SHM_DISABLE), (copies & SENDER) != 0, (copies & RECEIVER) != 0,
                    configuration.get(Settings.SHM_LOCALITY) == SENDER);
        }

        private static Optional<String> refusal(Configuration configuration) {
            String network = configuration.get(Settings.NETWORK);
            if (!network.equals(Settings.NETWORK.defaultValue())) {
                return Optional.of("MILLRACE_NET=" + network);
            }
            if (configuration.get(Settings.NET_DEVICE_UNPACK).orElse(false)) {
                return Optional.of(Settings.NET_DEVICE_UNPACK.name() + "=1 is of networks");
            }
            if (configuration.get(Settings.LINK).isPresent()) {
                return Optional.of(Settings.LINK.name() + " is of networks");
            }
            return configuration.get(Settings.FAULT).map(fault -> "MILLRACE_FAULT is planted in a network");
        }
    }

    /**
     * Options of sends and receives. All ranks have the same options, so that both ends divide a transfer in the same
     * way.
     *
     * @param sharesSlots whether a channel's connections over a network share their slots (mode OFFSET)
     * @param chunkBytes  size of a chunk of protocol Simple in bytes, at most a slot
     * @param llBytes     size of the largest transfer that uses LL, in bytes; -1 for none
     * @param groups      whether the collectives of several channels share network connections
     */
    record TransferOptions(boolean sharesSlots, long chunkBytes, long llBytes, boolean groups) {

        /** NCCL's chunk size for sends and receives over a network, which is also the size of a shared slot. */
        private static final long SHARED_CHUNK_BYTES = 128 << 10;

        /**
         * Maximum number of ranks without shared slots, if the user does not decide. Shared slots save memory. With
         * more ranks than this number, shared slots also save time, because they stay in the cache. Chunks of less than
         * a few KiB are an exception. {@code PoolBench} measures the time; performance.md has figures.
         */
        private static final int SHARING_PEERS = 16;

        static TransferOptions of(Configuration configuration, int ranks) {
            boolean shares = configuration.get(Settings.NET_SHARED_BUFFERS).orElse(ranks > SHARING_PEERS);
            long slotBytes = configuration.get(Settings.BUFFER_SIZE) / ConnectionLayout.SLOTS;
            long chunkBytes =
                    configuration.get(Settings.P2P_NET_CHUNK_SIZE).orElse(shares ? SHARED_CHUNK_BYTES : slotBytes);
            return new TransferOptions(shares, Math.min(chunkBytes, slotBytes),
                    configuration.get(Settings.P2P_LL_THRESHOLD).orElse(-1L),
                    configuration.get(Settings.GROUPED_CONNECTIONS));
        }

        /** Returns the protocol of a transfer. {@code NCCL_PROTO} does not affect it, as in NCCL. */
        public Protocol protocol(long bytes) {
            return bytes <= llBytes ? Protocol.LL : Protocol.SIMPLE;
        }

        /** Returns the options as a text. Each rank compares its text with the texts of the other ranks. */
        String text() {
            return (sharesSlots ? "slots shared, " : "") + (groups ? "connections grouped, " : "") + "chunks of "
                    + chunkBytes + " bytes, LL up to " + llBytes;
        }
    }
}
