package org.millrace.net.plugin;

import org.jspecify.annotations.Nullable;
import org.millrace.net.connection.InFlight;

/**
 * Payloads that travel in messages of their own, oldest first, and which of their bytes comes next. Both ends divide
 * them alike, into pieces that are counted over the whole connection. One thread.
 */
final class PayloadQueue {

    /** Tags are small numbers, as NCCL's are: pieces of one receive have different ones. */
    private static final int TAG_MASK = 63;

    private final @Nullable PluginRegion[] regions;
    private final long[] addresses;
    private final long[] lengths;
    private final long pieceBytes;
    private final InFlight window;
    /** Pieces of the payloads that were added so far. */
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

    /** Adds a payload; returns the number of its last piece. */
    long add(PluginRegion region, long offset, long bytes) {
        int slot = window.begin();
        regions[slot] = region;
        addresses[slot] = region.segment().address() + offset;
        lengths[slot] = bytes;
        pieces += (bytes + pieceBytes - 1) / pieceBytes;
        return pieces - 1;
    }

    /** The memory of the next piece; there must be one. */
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

    /** Length of the next piece. */
    long bytes() {
        return Math.min(lengths[window.oldest()], pieceBytes);
    }

    /** What both ends call the next piece in the plugin's matching. */
    int tag() {
        return (int) nextPiece & TAG_MASK;
    }

    /** Goes on to the piece behind the next one. */
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
