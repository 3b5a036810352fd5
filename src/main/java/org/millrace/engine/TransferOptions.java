package org.millrace.engine;

import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.config.Configuration;
import org.millrace.config.Settings;

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
