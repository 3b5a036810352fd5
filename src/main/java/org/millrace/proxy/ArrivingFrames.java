package org.millrace.proxy;

import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.LL128Line;
import org.millrace.abi.LLLine;
import org.millrace.abi.Protocol;
import org.millrace.net.MemoryRegion;

/**
 * The frames that are being received, oldest first, and for each frame the work that remains before the device is
 * notified.
 *
 * <p>
 * A kernel polls the flag of each line of LL and LL128. The data of a line must therefore be stored before its flag. No
 * network guarantees this order. Frames with lines are therefore received into a staging region next to the buffers.
 * When all lines of a frame have arrived, this class copies them to the slot. If the network stores whole words, LL
 * lines are received directly into their slot, because one word contains a flag and its data.
 *
 * <p>
 * When a network card reports completion, the data that it wrote to a GPU can still be on its way. This class flushes
 * such data before the device is notified. Lines need no flush, because the CPU copies them.
 */
final class ArrivingFrames {

    private final SlotBuffers buffers;
    private final MemoryRegion staging;
    private final LL128Line ll128Line;
    private final boolean wholeWords;
    private final Protocol[] protocols = new Protocol[ConnectionLayout.SLOTS];
    private final @Nullable MemoryRegion[] regions = new MemoryRegion[ConnectionLayout.SLOTS];
    private final long[] offsets = new long[ConnectionLayout.SLOTS];
    private final long[] sizes = new long[ConnectionLayout.SLOTS];
    private long taken;
    private long arrived;

    /**
     * @param staging    region with the length and the layout of the LL and LL128 buffers together
     * @param wholeWords whether the network stores whole words, see {@link org.millrace.net.FrameReceiver}
     */
    ArrivingFrames(SlotBuffers buffers, MemoryRegion staging, boolean wholeWords) {
        this.buffers = buffers;
        this.staging = staging;
        this.ll128Line = buffers.layout().ll128Line();
        this.wholeWords = wholeWords;
    }

    /**
     * Returns the region that receives the frames of a protocol. The payload begins at the offset that the layout
     * assigns to the frame's slot.
     */
    MemoryRegion region(Protocol protocol) {
        return isStaged(protocol) ? staging : buffers.region(protocol);
    }

    private boolean isStaged(Protocol protocol) {
        return protocol == Protocol.LL128 || protocol == Protocol.LL && !wholeWords;
    }

    /** Adds a frame that is being received, with its slot as the destination and without a flush. */
    void taken(Protocol protocol, long step, long size) {
        taken(protocol, null, buffers.slotOffset(protocol, step), size);
    }

    /**
     * Adds a frame that is being received.
     *
     * @param flushed region of the destination if the payload must be flushed after its arrival, otherwise null
     * @param offset  offset of the destination in the region
     */
    void taken(Protocol protocol, @Nullable MemoryRegion flushed, long offset, long size) {
        int index = ConnectionLayout.slot(taken++);
        protocols[index] = protocol;
        regions[index] = flushed;
        offsets[index] = offset;
        sizes[index] = size;
    }

    /** Does the remaining work for the oldest frame, after its payload has arrived, and removes the frame. */
    void arrived() {
        int index = ConnectionLayout.slot(arrived++);
        Protocol protocol = protocols[index];
        if (regions[index] != null) {
            regions[index].flush(offsets[index], sizes[index]);
            regions[index] = null;
        } else if (isStaged(protocol) && protocol == Protocol.LL) {
            LLLine.copyWords(staging.segment(), buffers.ll().segment(), offsets[index], sizes[index]);
        } else if (isStaged(protocol)) {
            ll128Line.copyRelease(staging.segment(), buffers.region(protocol).segment(), offsets[index], sizes[index]);
        }
    }

    boolean isEmpty() {
        return taken == arrived;
    }
}
