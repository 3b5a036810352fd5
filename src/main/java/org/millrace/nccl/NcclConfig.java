package org.millrace.nccl;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SegmentAllocator;
import java.util.EnumMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.ffi.nccl.ncclConfig_t;
import org.millrace.ffi.nccl.nccl_h;

/**
 * Options of one communicator. If an option is not set, its value comes from the environment or from NCCL. Immutable:
 * each {@code with} method returns a changed copy.
 */
public final class NcclConfig {

    /** Configuration without any option. */
    public static final NcclConfig DEFAULT = new NcclConfig(Map.of(), null, null);

    private static final int NET_NAME_SINCE = 21700;
    private static final int COMMUNICATOR_NAME_SINCE = 22703;

    /**
     * The numeric options. If the loaded NCCL is older than an option, the option is refused when a communicator is
     * created.
     */
    public enum Option {
        /**
         * 1: a call returns when its work is complete; 0: a call returns immediately, and
         * {@link NcclCommunicator#awaitReady} waits for its completion. Since NCCL 2.14.
         */
        BLOCKING(21400),
        /** Number of thread blocks in a cluster, 0 to 8. Since NCCL 2.17. */
        CGA_CLUSTER_SIZE(21700),
        /** Minimum number of thread blocks of a collective. Since NCCL 2.17. */
        MIN_CTAS(21700),
        /** Maximum number of thread blocks of a collective. Since NCCL 2.17. */
        MAX_CTAS(21700),
        /** If 1, communicators that are split from this communicator share its resources. Since NCCL 2.18. */
        SPLIT_SHARE(21801),
        /**
         * Traffic class of the communicator, which a network may use to treat the communicator's traffic differently.
         * Since NCCL 2.26.
         */
        TRAFFIC_CLASS(22602),
        /** If 1, NCCL reduces in the collective network where possible. Since NCCL 2.27. */
        COLLNET_ENABLE(22703),
        /**
         * Policy for the number of thread blocks that NCCL uses, {@code NCCL_CTA_POLICY_*}. 0: default; 1: efficiency;
         * 2: no thread blocks, or the smallest possible number. Since NCCL 2.27.
         */
        CTA_POLICY(22703),
        /** If 1, communicators that are shrunk from this communicator share its resources. Since NCCL 2.27. */
        SHRINK_SHARE(22703),
        /** Number of thread blocks for reductions in the NVLink switch. Since NCCL 2.27. */
        NVLS_CTAS(22703),
        /** Number of channels that share one network connection to a peer. Since NCCL 2.28. */
        CHANNELS_PER_NET_PEER(22803),
        /** If 1, NCCL schedules operations over NVLink first. Since NCCL 2.28. */
        NVLINK_CENTRIC_SCHEDULING(22803),
        /**
         * Use of CUDA graphs. 0: none; 1: one graph at a time; 2: several graphs, or graphs mixed with operations
         * outside of graphs. Since NCCL 2.29.
         */
        GRAPH_USAGE_MODE(22902),
        /** Number of contexts for {@linkplain NcclCommunicator#putSignal puts and signals}. Since NCCL 2.29. */
        RMA_CONTEXTS(22902),
        /** Maximum number of peers that a rank exchanges sends and receives with. Since NCCL 2.30. */
        MAX_P2P_PEERS(23003),
        /**
         * Order of captured operations of different streams. 1: NCCL determines the order; 0: the program determines
         * the order. Since NCCL 2.30.7.
         */
        GRAPH_STREAM_ORDERING(23007);

        private final int since;

        Option(int since) {
            this.since = since;
        }
    }

    private final Map<Option, Integer> options;
    private final @Nullable String netName;
    private final @Nullable String communicatorName;

    private NcclConfig(Map<Option, Integer> options, @Nullable String netName, @Nullable String communicatorName) {
        this.options = Map.copyOf(options);
        this.netName = netName;
        this.communicatorName = communicatorName;
    }

    /** {@return a copy with an option set} */
    public NcclConfig with(Option option, int value) {
        Map<Option, Integer> changed = new EnumMap<>(Option.class);
        changed.putAll(options);
        changed.put(option, value);
        return new NcclConfig(changed, netName, communicatorName);
    }

    /**
     * {@return a copy with {@link Option#BLOCKING} set}
     *
     * @param blocking false if calls return immediately; {@link NcclCommunicator#awaitReady} then waits for their
     *                 completion, with a deadline
     */
    public NcclConfig withBlocking(boolean blocking) {
        return with(Option.BLOCKING, blocking ? 1 : 0);
    }

    /**
     * {@return a copy with the name of the network}
     *
     * @param name name of a plugin's network, or {@code "Socket"} or {@code "IB"}; null if NCCL chooses the network
     */
    public NcclConfig withNetName(@Nullable String name) {
        return new NcclConfig(options, name, communicatorName);
    }

    /**
     * {@return a copy with the communicator's name for logs and profiles}
     *
     * @param name name of the communicator; null for none. A name requires NCCL 2.27
     */
    public NcclConfig withCommunicatorName(@Nullable String name) {
        return new NcclConfig(options, netName, name);
    }

    /** {@return the value of an option; null if it is not set} */
    public @Nullable Integer get(Option option) {
        return options.get(option);
    }

    boolean isNonBlocking() {
        return Integer.valueOf(0).equals(get(Option.BLOCKING));
    }

    /**
     * Writes NCCL's structure of the options. NCCL reads the structure only during the call that receives it.
     *
     * @throws MillraceException if an option is set that the loaded NCCL would ignore
     */
    MemorySegment write(SegmentAllocator allocator, NcclLibrary library) {
        options.keySet().forEach(option -> library.requireVersion("the option " + option, option.since));
        if (netName != null) {
            library.requireVersion("the choice of a network", NET_NAME_SINCE);
        }
        if (communicatorName != null) {
            library.requireVersion("a communicator's name", COMMUNICATOR_NAME_SINCE);
        }
        MemorySegment struct = ncclConfig_t.allocate(allocator);
        ncclConfig_t.size(struct, ncclConfig_t.layout().byteSize());
        ncclConfig_t.magic(struct, nccl_h.MILLRACE_NCCL_CONFIG_MAGIC());
        ncclConfig_t.version(struct, nccl_h.NCCL_VERSION_CODE());
        ncclConfig_t.netName(struct, string(netName, allocator));
        // NCCL copies the name of the network. NCCL stores the pointer to the communicator's name, and also passes
        // the pointer to child communicators (2.28 init.cc). The memory of the communicator's name must therefore
        // never be freed.
        ncclConfig_t.commName(struct, string(communicatorName, Arena.global()));
        for (Option option : Option.values()) {
            set(struct, option, options.getOrDefault(option, nccl_h.NCCL_CONFIG_UNDEF_INT()));
        }
        return struct;
    }

    private static MemorySegment string(@Nullable String text, SegmentAllocator allocator) {
        return text == null ? MemorySegment.NULL : allocator.allocateFrom(text);
    }

    private static void set(MemorySegment struct, Option option, int value) {
        switch (option) {
            case BLOCKING -> ncclConfig_t.blocking(struct, value);
            case CGA_CLUSTER_SIZE -> ncclConfig_t.cgaClusterSize(struct, value);
            case MIN_CTAS -> ncclConfig_t.minCTAs(struct, value);
            case MAX_CTAS -> ncclConfig_t.maxCTAs(struct, value);
            case SPLIT_SHARE -> ncclConfig_t.splitShare(struct, value);
            case TRAFFIC_CLASS -> ncclConfig_t.trafficClass(struct, value);
            case COLLNET_ENABLE -> ncclConfig_t.collnetEnable(struct, value);
            case CTA_POLICY -> ncclConfig_t.CTAPolicy(struct, value);
            case SHRINK_SHARE -> ncclConfig_t.shrinkShare(struct, value);
            case NVLS_CTAS -> ncclConfig_t.nvlsCTAs(struct, value);
            case CHANNELS_PER_NET_PEER -> ncclConfig_t.nChannelsPerNetPeer(struct, value);
            case NVLINK_CENTRIC_SCHEDULING -> ncclConfig_t.nvlinkCentricSched(struct, value);
            case GRAPH_USAGE_MODE -> ncclConfig_t.graphUsageMode(struct, value);
            case RMA_CONTEXTS -> ncclConfig_t.numRmaCtx(struct, value);
            case MAX_P2P_PEERS -> ncclConfig_t.maxP2pPeers(struct, value);
            case GRAPH_STREAM_ORDERING -> ncclConfig_t.graphStreamOrdering(struct, value);
        }
    }

    @Override
    public String toString() {
        return "NCCL config " + options + (netName == null ? "" : " net " + netName)
                + (communicatorName == null ? "" : " name " + communicatorName);
    }
}
