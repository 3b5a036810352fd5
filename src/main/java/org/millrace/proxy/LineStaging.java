package org.millrace.proxy;

import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.net.MemoryRegion;

/**
 * Where frames with lines arrive. A kernel polls the flags in its lines, so the data must be stored before the flag,
 * and no network stores like that: lines are received next to the buffers, and moved when they are all there. LL lines
 * go straight into their slot from a network that stores whole words: each of a line's two flags is in one word with
 * its data.
 */
final class LineStaging {

    private final ConnectionLayout layout;
    private final MemoryRegion memory;
    private final MemoryRegion staging;
    private final boolean wholeWords;
    private final long[] steps = new long[ConnectionLayout.SLOTS];
    private final long[] sizes = new long[ConnectionLayout.SLOTS];
    private final Protocol[] protocols = new Protocol[ConnectionLayout.SLOTS];
    private long taken;
    private long arrived;

    /**
     * @param memory     the connection's
     * @param staging    as long as the LL and the LL128 buffer together, laid out as they are
     * @param wholeWords whether the network stores whole words
     */
    LineStaging(ConnectionLayout layout, MemoryRegion memory, MemoryRegion staging, boolean wholeWords) {
        this.layout = layout;
        this.memory = memory;
        this.staging = staging;
        this.wholeWords = wholeWords;
    }

    /** Where a frame of a protocol is received: at the offset that its slot has in the layout. */
    MemoryRegion region(Protocol protocol) {
        return isStaged(protocol) ? staging : memory;
    }

    private boolean isStaged(Protocol protocol) {
        return protocol == Protocol.LL128 || protocol == Protocol.LL && !wholeWords;
    }

    /** The next frame is being received. */
    void taken(Protocol protocol, long step, long size) {
        int index = ConnectionLayout.slot(taken++);
        steps[index] = step;
        sizes[index] = size;
        protocols[index] = protocol;
    }

    /** The oldest frame is there. */
    void arrived() {
        int index = ConnectionLayout.slot(arrived++);
        if (!isStaged(protocols[index])) {
            return; // received straight to where the device looks for it
        }
        long offset = layout.slotOffset(protocols[index], steps[index]);
        if (protocols[index] == Protocol.LL) {
            Lines.storeLL(staging.segment(), memory.segment(), offset, sizes[index]);
        } else {
            Lines.storeLL128(staging.segment(), memory.segment(), offset, sizes[index]);
        }
    }

    boolean isEmpty() {
        return taken == arrived;
    }
}
