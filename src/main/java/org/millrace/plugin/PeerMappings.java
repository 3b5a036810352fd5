package org.millrace.plugin;

import org.jspecify.annotations.Nullable;
import org.millrace.cuda.ForeignMemory;

/**
 * A window's memory at each rank, as far as this process maps it.
 *
 * @param peers by rank; null where it is not mapped
 * @param bytes how much memory the window has at each rank
 */
record PeerMappings(@Nullable ForeignMemory[] peers, long[] bytes) implements AutoCloseable {

    long reach(int peer) {
        return peers[peer] == null ? 0 : bytes[peer];
    }

    long address(int peer) {
        return peers[peer].address();
    }

    @Override
    public void close() {
        for (ForeignMemory peer : peers) {
            if (peer != null) {
                peer.close();
            }
        }
    }
}
