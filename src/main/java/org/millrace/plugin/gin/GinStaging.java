package org.millrace.plugin.gin;

import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.gin.GinCommunicator;
import org.millrace.gin.StagingRing;
import org.millrace.gin.Window;
import org.millrace.net.shm.SharedMemory;
import org.millrace.plugin.host.NcclLog;

/**
 * Shared memory in which a group's ranks on one host stage bytes for each other. Each direction between two ranks has a
 * ring. The ring is created with the first window that this rank cannot access directly at the peer. If the memory
 * cannot be created or mapped, the bytes travel over the network, like bytes between hosts.
 */
final class GinStaging {

    /**
     * Maximum size of a ring, in bytes. The ring has room for eight chunks: one that is written, one that is read, and
     * six that cover the reaction times of sender and receiver.
     */
    private static final long MAX_BYTES = 8 << 20;
    /**
     * Maximum sum of the sizes of all rings through which this rank sends in a group, in bytes. Containers have little
     * shared memory.
     */
    private static final long GROUP_BYTES = 32 << 20;

    private final GinSharedMemory shared;
    private final GinExchange exchange;
    private final boolean[] tried;

    GinStaging(GinSharedMemory shared, GinExchange exchange) {
        this.shared = shared;
        this.exchange = exchange;
        this.tried = new boolean[exchange.ranks];
    }

    /**
     * Connects rings for a window. Every rank calls this method for each window. Each rank sends three messages to each
     * peer: whether the rank can share memory, the memory that it created, and whether it mapped the peer's memory.
     */
    void connect(GinCommunicator communicator, Window window) {
        int ranks = tried.length;
        boolean[] near = shared.near();
        GinSharedMemory.@Nullable Pinned[] made = new GinSharedMemory.Pinned[ranks];
        for (int peer = 0; peer < ranks; peer++) {
            boolean wanted = near[peer] && !tried[peer] && window.memory().reach(peer) == 0;
            made[peer] = wanted ? make(peer, communicator.options().chunkBytes()) : null;
        }
        long[][] theirs = shared.exchange(made);
        long[][] mine = new long[ranks][GinExchange.WORDS];
        for (int peer = 0; peer < ranks; peer++) {
            mine[peer][0] = peer != exchange.rank && open(communicator, peer, theirs[peer]) ? 1 : 0;
        }
        theirs = exchange.exchange(mine);
        for (int peer = 0; peer < ranks; peer++) {
            if (made[peer] != null && theirs[peer][0] == 1) {
                communicator.stageOut(peer, ring(made[peer]));
                NcclLog.info("GIN: bytes for rank " + peer + " are staged in memory shared with it");
            } else if (made[peer] != null) {
                // The peer could not map the memory, so bytes for the peer travel over the network.
                made[peer].memory().deleteFile();
            }
        }
    }

    private GinSharedMemory.@Nullable Pinned make(int peer, long chunkBytes) {
        tried[peer] = true;
        long share = Long.highestOneBit(GROUP_BYTES / (tried.length - 1));
        long capacity = Math.max(2 * Long.highestOneBit(2 * chunkBytes - 1), Math.min(MAX_BYTES, share));
        try {
            return shared.create(StagingRing.bytes(capacity));
        } catch (MillraceException e) {
            NcclLog.info("GIN: bytes for rank " + peer + " travel over the network (" + e.getMessage() + ")");
            return null;
        }
    }

    /** Maps a peer's memory. Returns false if the peer created no memory, or if the memory cannot be mapped. */
    private boolean open(GinCommunicator communicator, int peer, long[] words) {
        long bytes = words[SharedMemory.KEY_WORDS];
        if (bytes == 0) {
            return false;
        }
        try {
            communicator.stageIn(peer, ring(shared.open(words, bytes)));
            return true;
        } catch (MillraceException | IllegalArgumentException e) {
            NcclLog.info("GIN: what rank " + peer + " sends travels over the network (" + e.getMessage() + ")");
            return false;
        }
    }

    private static StagingRing ring(GinSharedMemory.Pinned pinned) {
        return new StagingRing(pinned.memory().segment(), pinned.device());
    }
}
