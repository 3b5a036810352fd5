package org.millrace.net.plugin;

import org.jspecify.annotations.Nullable;
import org.millrace.net.connection.InFlight;

/**
 * Payloads that are sent in separate messages, oldest first, and the position of the next byte of the oldest payload.
 * Both ends divide the payloads into the same pieces. Pieces are numbered over the whole connection. Used by one
 * thread.
 */
final class PayloadQueue {

    /** Tags are small numbers, as in NCCL. The pieces of one receive have different tags. */
    private static final int TAG_MASK = 63;

    private final @Nullable PluginRegion[] regions;
    private final long[] addresses;
    private final long[] lengths;
    private final long pieceBytes;
    private final InFlight window;
    /** Number of pieces of all payloads added so far. */
    private long pieces;
    private long nextPiece;

    PayloadQueue(int capacity, long pieceBytes) {
        window = new InFlight(capacity);
        regions = new PluginRegion[window.slots()];
        addresses = new long[window.slots()];
        lengths = new long[window.slots()];
        this.pieceBytes = pieceBytes;
    }

    boolean isEmpty() {
        return window.isEmpty();
    }

    /** Adds a payload. Returns the ordinal of the payload's last piece, counted over all payloads from 0. */
    long add(PluginRegion region, long offset, long bytes) {
        int slot = window.begin();
        regions[slot] = region;
        addresses[slot] = region.segment().address() + offset;
        lengths[slot] = bytes;
        pieces += (bytes + pieceBytes - 1) / pieceBytes;
        return pieces - 1;
    }

    /** Returns the region that contains the next piece. A next piece must exist. */
    PluginRegion region() {
        PluginRegion region = regions[window.oldest()];
        if (region == null) {
            throw new IllegalStateException("no payload is waiting");
        }
        return region;
    }

    long address() {
        return addresses[window.oldest()];
    }

    /** Returns the length of the next piece in bytes. */
    long bytes() {
        return Math.min(lengths[window.oldest()], pieceBytes);
    }

    /** Returns the tag of the next piece. The plugin matches sends with receives by their tags. */
    int tag() {
        return (int) nextPiece & TAG_MASK;
    }

    void advance() {
        long bytes = bytes();
        int oldest = window.oldest();
        nextPiece++;
        addresses[oldest] += bytes;
        lengths[oldest] -= bytes;
        if (lengths[oldest] == 0) {
            regions[window.finishOldest()] = null;
        }
    }
}
