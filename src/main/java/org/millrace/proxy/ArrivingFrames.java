package org.millrace.proxy;

import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.LL128Line;
import org.millrace.abi.LLLine;
import org.millrace.abi.Protocol;
import org.millrace.net.MemoryRegion;

/**
 * The frames that are being received, oldest first, and the work that remains for each before the device is notified.
 *
 * <p>
 * A kernel polls the flags in its lines, so the data must be stored before the flag. No network guarantees this order.
 * Lines are therefore received into a staging region next to the buffers, and are copied when all of them have arrived.
 * If the network stores whole words, LL lines are received directly into their slot, because each flag is in one word
 * with its data.
 *
 * <p>
 * Data that a network card wrote may still be on its way to a GPU when the card reports completion, so it is flushed.
 * Lines need no flush, because this processor copies them.
 */
final class ArrivingFrames {

    private final SlotBuffers buffers;
    private final MemoryRegion staging;
    private final boolean wholeWords;
    private final Protocol[] protocols = new Protocol[ConnectionLayout.SLOTS];
    private final @Nullable MemoryRegion[] regions = new MemoryRegion[ConnectionLayout.SLOTS];
    private final long[] offsets = new long[ConnectionLayout.SLOTS];
    private final long[] sizes = new long[ConnectionLayout.SLOTS];
    private long taken;
    private long arrived;

    /**
     * Creates the list of a connection's frames, which is empty.
     *
     * @param staging    region with the length and the layout of the LL and LL128 buffers together
     * @param wholeWords whether the network stores whole words
     */
    ArrivingFrames(SlotBuffers buffers, MemoryRegion staging, boolean wholeWords) {
        this.buffers = buffers;
        this.staging = staging;
        this.wholeWords = wholeWords;
    }

    /** Returns the region that receives a frame of a protocol, at the offset of the frame's slot in the layout. */
    MemoryRegion region(Protocol protocol) {
        return isStaged(protocol) ? staging : buffers.region(protocol);
    }

    private boolean isStaged(Protocol protocol) {
        return protocol == Protocol.LL128 || protocol == Protocol.LL && !wholeWords;
    }

    /** Records that the next frame is being received into its slot. */
    void taken(Protocol protocol, long step, long size) {
        taken(protocol, null, buffers.slotOffset(protocol, step), size);
    }

    /**
     * Records that the next frame is being received.
     *
     * @param flushed the destination if it must be flushed, otherwise null
     */
    void taken(Protocol protocol, @Nullable MemoryRegion flushed, long offset, long size) {
        int index = ConnectionLayout.slot(taken++);
        protocols[index] = protocol;
        regions[index] = flushed;
        offsets[index] = offset;
        sizes[index] = size;
    }

    /** Completes the oldest frame, which has arrived. */
    void arrived() {
        int index = ConnectionLayout.slot(arrived++);
        Protocol protocol = protocols[index];
        if (regions[index] != null) {
            regions[index].flush(offsets[index], sizes[index]);
            regions[index] = null;
        } else if (isStaged(protocol) && protocol == Protocol.LL) {
            LLLine.copyWords(staging.segment(), buffers.ll().segment(), offsets[index], sizes[index]);
        } else if (isStaged(protocol)) {
            LL128Line.copyRelease(staging.segment(), buffers.region(protocol).segment(), offsets[index], sizes[index]);
        }
    }

    boolean isEmpty() {
        return taken == arrived;
    }
}
