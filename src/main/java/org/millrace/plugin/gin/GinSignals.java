package org.millrace.plugin.gin;

import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.gin.GinCommunicator;
import org.millrace.gin.SignalMemory;
import org.millrace.net.shm.SharedMemory;
import org.millrace.plugin.host.NcclLog;

/**
 * Places the signals of contexts in memory that a group's ranks on one host share. Each rank then increments the other
 * ranks' signals directly. If the memory cannot be created or mapped, signals use the network, as between hosts.
 */
final class GinSignals {

    private final int ranks;
    private final GinExchange exchange;
    private final GinSharedMemory shared;
    private final GinCommunicator communicator;

    GinSignals(GinExchange exchange, GinSharedMemory shared, GinCommunicator communicator) {
        this.ranks = communicator.ranks();
        this.exchange = exchange;
        this.shared = shared;
        this.communicator = communicator;
    }

    /**
     * Signals of contexts that are created together.
     *
     * @param mine   this rank's shared memory; null if its signals are not in shared memory
     * @param device device address of this rank's shared memory
     * @param theirs each rank's shared memory; null for a rank whose memory this process does not map
     */
    record Contexts(@Nullable SignalMemory mine, long device, @Nullable SignalMemory[] theirs) {

        GinDevice.Shared signals(int context) {
            return new GinDevice.Shared(mine.signals(context), device + mine.offset(context));
        }

        /** Returns a peer's signals that the given rank of this process increments; null if they are not mapped. */
        SignalMemory.PeerSignals of(int peer, int context, int rank) {
            return theirs[peer] == null ? null : theirs[peer].toward(context, rank);
        }
    }

    /** Creates the signals. Every rank calls this method when the ranks create contexts. */
    Contexts create(int contexts, int signals) {
        long bytes = SignalMemory.bytes(ranks, contexts, signals);
        boolean[] near = shared.near();
        GinSharedMemory.Pinned made = make(near, bytes);
        SignalMemory mine = made == null ? null : new SignalMemory(made.memory().segment(), ranks, signals);
        if (mine != null) {
            communicator.share(mine);
        }
        GinSharedMemory.@Nullable Pinned[] forPeers = new GinSharedMemory.Pinned[ranks];
        for (int peer = 0; peer < ranks; peer++) {
            forPeers[peer] = near[peer] ? made : null;
        }
        long[][] theirKeys = shared.exchange(forPeers);
        SignalMemory[] theirs = new SignalMemory[ranks];
        for (int peer = 0; peer < ranks; peer++) {
            theirs[peer] = near[peer] ? map(peer, theirKeys[peer], bytes, signals) : null;
        }
        // This exchange is a barrier. When it returns, every rank has tried to map its peers' memory.
        exchange.exchange(new long[ranks][GinExchange.WORDS]);
        if (made != null) {
            made.memory().deleteFile();
        }
        return new Contexts(mine, made == null ? 0 : made.device(), theirs);
    }

    private GinSharedMemory.@Nullable Pinned make(boolean[] near, long bytes) {
        for (boolean each : near) {
            if (each) {
                try {
                    return shared.create(bytes);
                } catch (MillraceException e) {
                    NcclLog.info("GIN: signals for this rank travel over the network (" + e.getMessage() + ")");
                    return null;
                }
            }
        }
        return null;
    }

    /** Maps a peer's memory. Returns null if the peer created no memory, or if the memory cannot be mapped. */
    private @Nullable SignalMemory map(int peer, long[] words, long bytes, int signals) {
        if (words[SharedMemory.KEY_WORDS] == 0) {
            return null;
        }
        try {
            return new SignalMemory(shared.join(words, bytes).segment(), ranks, signals);
        } catch (MillraceException | IllegalArgumentException e) {
            NcclLog.info("GIN: signals for rank " + peer + " travel over the network (" + e.getMessage() + ")");
            return null;
        }
    }
}
