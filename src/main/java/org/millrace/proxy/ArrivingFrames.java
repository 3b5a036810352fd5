package org.millrace.proxy;

import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.LL128Line;
import org.millrace.abi.LLLine;
import org.millrace.abi.Protocol;
import org.millrace.net.MemoryRegion;

/**
 * The frames that are being received, oldest first, and what is left to do with each before the device is told of it.
 *
 * <p>
 * A kernel polls the flags in its lines, so the data must be stored before the flag, and no network stores like that:
 * lines are received into a staging region next to the buffers, and copied when they are all there. LL lines go
 * straight into their slot from a network that stores whole words: each of a line's two flags is in one word with its
 * data.
 *
 * <p>
 * What a network card wrote may be on its way to a GPU when the card says that it is done: it is flushed. Lines need no
 * flush: this processor copies them.
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
     * @param staging    as long as the LL and the LL128 buffer together, laid out as they are
     * @param wholeWords whether the network stores whole words
     */
    ArrivingFrames(SlotBuffers buffers, MemoryRegion staging, boolean wholeWords) {
        this.buffers = buffers;
        this.staging = staging;
        this.wholeWords = wholeWords;
    }

    /** Where a frame of a protocol is received: at the offset that its slot has in the layout. */
    MemoryRegion region(Protocol protocol) {
        return isStaged(protocol) ? staging : buffers.region(protocol);
    }

    private boolean isStaged(Protocol protocol) {
        return protocol == Protocol.LL128 || protocol == Protocol.LL && !wholeWords;
    }

    /** The next frame is received into its slot. */
    void taken(Protocol protocol, long step, long size) {
        taken(protocol, null, buffers.slotOffset(protocol, step), size);
    }

    /**
     * The next frame is being received.
     *
     * @param flushed where it goes, if it has to be flushed there
     */
    void taken(Protocol protocol, @Nullable MemoryRegion flushed, long offset, long size) {
        int index = ConnectionLayout.slot(taken++);
        protocols[index] = protocol;
        regions[index] = flushed;
        offsets[index] = offset;
        sizes[index] = size;
    }

    /** The oldest frame is there. */
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
