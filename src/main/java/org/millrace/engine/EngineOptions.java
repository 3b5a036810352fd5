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
import org.millrace.config.Settings;
import org.millrace.engine.NetTransport.Unpacking;

/**
 * What the engine needs to know about how to run, all in one place and all decided.
 *
 * @param channels          rings over which large operations are spread
 * @param bufferBytes       bytes of a connection's buffer: as many slots as there are steps
 * @param threads           polling threads of a rank: 1 runs device and proxies in turn, 2 gives each its own
 * @param ownSleepNanos     how long the device's thread sleeps while threads that wait run it, for which it has no core
 *                          of its own; 0 if they do not
 * @param idle              makes a strategy for one polling thread, which sleeps by a sleeper
 * @param hasCore           whether a polling thread may poll for long before it sleeps; false if ranks are more than
 *                          cores
 * @param silentSleepNanos  longest sleep of a polling thread while it waits for something that does not wake it
 * @param wokenSleepNanos   longest sleep of a polling thread that each event wakes
 * @param stallDeadline     how long an operation may go without any progress
 * @param lateDeadline      how long a rank that lives may be late for an operation
 * @param closeDeadline     how long a rank waits when it leaves
 * @param firstStep         where the connections' step counters begin
 * @param workFifoBytes     bytes of the FIFO in which work travels that a kernel's arguments have no room for
 * @param workArgumentBytes the most bytes of a kernel's arguments
 * @param firstWork         where the FIFO's counters begin
 * @param ptrThreshold      bytes of a hop from which on collectives over networks leave data in the user's memory
 * @param unpacking         null if kernels do not gather what they receive
 */
record EngineOptions(int channels, long bufferBytes, int threads, long ownSleepNanos,
        Function<Sleeper, IdleStrategy> idle, boolean hasCore, long silentSleepNanos, long wokenSleepNanos,
        Duration connectDeadline, Duration stallDeadline, Duration lateDeadline, Duration closeDeadline, long firstStep,
        AlgorithmChoice algorithms, ProtocolChoice protocols, TransferOptions transfers, int workFifoBytes,
        int workArgumentBytes, int firstWork, long ptrThreshold, Optional<Long> registeredThreshold,
        SharedMemoryOptions sharedMemory, @Nullable Unpacking unpacking) {

    /** System properties that only tests of counters' wrap set, the same on all ranks: where the counters begin. */
    private static final String FIRST_STEP = "org.millrace.engine.firstStep";
    private static final String FIRST_WORK = "org.millrace.engine.firstWork";

    /** One channel saturates a machine's loopback; more only add steps. */
    private static final int DEFAULT_CHANNELS = 1;
    /** With a core for each polling thread, passes that are spun through before the first yield. */
    private static final int SPINS = 200;
    /**
     * Where a thread that waits runs the device, on a core that it perhaps shares with the peer: some two microseconds.
     */
    private static final int SHARED_SPINS = 20;

    /** Delay of the first operation after a pause. */
    private static final long SILENT_SLEEP_NANOS = 1_000_000;
    /** A wake-up takes some 50 us of a core: it is for events that wake no thread. */
    private static final long WOKEN_SLEEP_NANOS = 50_000_000;

    /** Where ranks are more than cores each look takes the core from another rank. */
    private static final long OWN_SLEEP_NANOS = 400_000;

    /** Decides what the user left open, with what the ranks said of themselves. */
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
                        : null);
    }

    /**
     * Returns the longest time without progress until an operation has failed by a deadline: a rank is late, then the
     * ranks connect, then nothing moves.
     */
    Duration longestOperation() {
        return lateDeadline.plus(connectDeadline).plus(stallDeadline);
    }

    /**
     * How the polling threads wait, unless the user counts their passes.
     *
     * @param most passes that they may spin through, 0 if there are more ranks than cores
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

    /** Channels that this rank proposes: the group uses the fewest that any of its ranks proposes. */
    static int proposedChannels(Configuration configuration) {
        int least = configuration.get(Settings.MIN_CHANNELS).orElse(1);
        int most = configuration.get(Settings.MAX_CHANNELS).orElse(Integer.MAX_VALUE);
        if (least > most) {
            throw new IllegalArgumentException(
                    "NCCL_MIN_NCHANNELS " + least + " is greater than NCCL_MAX_NCHANNELS " + most);
        }
        return Math.min(Math.max(DEFAULT_CHANNELS, least), most);
    }

    /** Bytes of one slot of protocol Simple. */
    long slotBytes() {
        return bufferBytes / ConnectionLayout.SLOTS;
    }

    /** How a connection's memory lies: an LL128 slot carries as much data as a Simple slot, an LL slot is NCCL's. */
    public ConnectionLayout layout() {
        long unitData = LL128Line.UNIT_LINES * LL128Line.DATA_BYTES;
        long units = (slotBytes() + unitData - 1) / unitData;
        return new ConnectionLayout(ConnectionLayout.DEFAULT.llBytes(),
                ConnectionLayout.SLOTS * units * LL128Line.UNIT_LINES * LL128Line.BYTES, bufferBytes);
    }

    /**
     * Whether, and how, ranks of one host share memory, and whether transports of other jars are asked first.
     *
     * @param others         {@code NCCL_MY_TRANSPORT_ENABLE}
     * @param refusal        why they must not, as every step is to be a frame of a network; empty if they may
     * @param p2pDisabled    {@code NCCL_P2P_DISABLE}
     * @param p2pCopies      whether the sender's proxy copies over P2P, instead of its device
     * @param shmDisabled    {@code NCCL_SHM_DISABLE}
     * @param senderCopies   whether the sender's proxy copies over SHM
     * @param receiverCopies whether the receiver's does
     * @param senderMakes    whether the sender makes the memory of SHM; the receiver else
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
     * How sends and receives travel. Both ends cut a transfer alike: all ranks have the same options.
     *
     * @param sharesSlots whether a channel's connections share their slots, where a network lies between (mode OFFSET)
     * @param chunkBytes  bytes of a chunk of protocol Simple, no more than a slot
     * @param llBytes     largest transfer that travels in LL; -1 for none
     * @param groups      whether the channels of a ring share connections of a network
     */
    record TransferOptions(boolean sharesSlots, long chunkBytes, long llBytes, boolean groups) {

        /** NCCL's chunk for sends and receives over a network, and so the size of a slot that is shared. */
        private static final long SHARED_CHUNK_BYTES = 128 << 10;

        /**
         * With so many peers and more slots are shared unless the user decides: then that takes less time too, but for
         * chunks of less than some KiB, as slots stay in the cache. {@code PoolBench} measures it; performance.md has
         * figures.
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

        /** The protocol of a transfer: {@code NCCL_PROTO} does not say it, as in NCCL. */
        public Protocol protocol(long bytes) {
            return bytes <= llBytes ? Protocol.LL : Protocol.SIMPLE;
        }

        /** For comparing with the other ranks'. */
        String text() {
            return (sharesSlots ? "slots shared, " : "") + (groups ? "connections grouped, " : "") + "chunks of "
                    + chunkBytes + " bytes, LL up to " + llBytes;
        }
    }
}
