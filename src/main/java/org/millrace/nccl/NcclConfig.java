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
 * Options of one communicator. NCCL or the environment chooses the options that are not set. Immutable; each
 * {@code with} method returns a changed copy.
 */
public final class NcclConfig {

    /** No option is set. */
    public static final NcclConfig DEFAULT = new NcclConfig(Map.of(), null, null);

    private static final int NET_NAME_SINCE = 21700;
    private static final int COMMUNICATOR_NAME_SINCE = 22703;

    /** The numeric options. An option that the loaded NCCL does not know is refused when it is used. */
    public enum Option {
        /**
         * 1: calls return when they are complete; 0: they return at once, and {@link NcclCommunicator#awaitReady}
         * waits. 2.14.
         */
        BLOCKING(21400),
        /** Number of blocks per cluster, 0 to 8; 2.17. */
        CGA_CLUSTER_SIZE(21700),
        /** Minimum number of thread blocks of a collective; 2.17. */
        MIN_CTAS(21700),
        /** Maximum number of thread blocks of a collective; 2.17. */
        MAX_CTAS(21700),
        /** 1: communicators split from this one share its resources; 2.18. */
        SPLIT_SHARE(21801),
        /** Class that a network may treat differently; 2.26. */
        TRAFFIC_CLASS(22602),
        /** 1: reduce in the network if possible; 2.27. */
        COLLNET_ENABLE(22703),
        /**
         * Policy for the number of NCCL's thread blocks, {@code NCCL_CTA_POLICY_*}: 0 default, 1 efficiency, 2 as close
         * to none as possible; 2.27.
         */
        CTA_POLICY(22703),
        /** 1: communicators shrunk from this one share its resources; 2.27. */
        SHRINK_SHARE(22703),
        /** Number of thread blocks for reductions in the NVLink switch; 2.27. */
        NVLS_CTAS(22703),
        /** Number of channels of one network connection to one peer; 2.28. */
        CHANNELS_PER_NET_PEER(22803),
        /** 1: schedule for NVLink first; 2.28. */
        NVLINK_CENTRIC_SCHEDULING(22803),
        /** 0: no CUDA graphs; 1: one graph; 2: several, or graphs and operations outside of them; 2.29. */
        GRAPH_USAGE_MODE(22902),
        /** Number of contexts for {@linkplain NcclCommunicator#putSignal puts and signals}; 2.29. */
        RMA_CONTEXTS(22902),
        /** Maximum number of peers for a rank's sends and receives; 2.30. */
        MAX_P2P_PEERS(23003),
        /** 1: NCCL orders captured operations of different streams; 0: the program orders them; 2.30.7. */
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
     * {@return a copy that sets whether calls wait for their completion}
     *
     * @param blocking false for calls that return at once; {@link NcclCommunicator#awaitReady} waits for them, with a
     *                 deadline
     */
    public NcclConfig withBlocking(boolean blocking) {
        return with(Option.BLOCKING, blocking ? 1 : 0);
    }

    /**
     * {@return a copy that chooses the network}
     *
     * @param name name of the plugin's network, or {@code "Socket"} or {@code "IB"}; null for NCCL's choice
     */
    public NcclConfig withNetName(@Nullable String name) {
        return new NcclConfig(options, name, communicatorName);
    }

    /**
     * {@return a copy that names the communicator in logs and profiles}
     *
     * @param name its name; null for none; since NCCL 2.27
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
     * Writes the structure, which NCCL reads during the call.
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
        // NCCL copies the network's name. It keeps the pointer to the communicator's name, and passes it to children
        // (2.28 init.cc), so that name must stay valid forever.
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
