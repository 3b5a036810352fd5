package org.millrace.proxy;

import org.millrace.abi.ConnectionLayout;
import org.millrace.net.MemoryRegion;

/**
 * Where the frames under way go, in their order, so that what the network wrote there can be flushed before the device
 * is told: a network card's writes may be on their way to a GPU when the card says that they are done. Lines need none:
 * they are moved by this processor.
 */
final class Destinations {

    private final MemoryRegion[] regions = new MemoryRegion[ConnectionLayout.SLOTS];
    private final long[] offsets = new long[ConnectionLayout.SLOTS];
    private final long[] sizes = new long[ConnectionLayout.SLOTS];
    private long taken;
    private long arrived;

    /** @param region null if there is nothing to flush */
    void taken(MemoryRegion region, long offset, long size) {
        int index = ConnectionLayout.slot(taken++);
        regions[index] = region;
        offsets[index] = offset;
        sizes[index] = size;
    }

    void arrived() {
        int index = ConnectionLayout.slot(arrived++);
        if (regions[index] != null) {
            regions[index].flush(offsets[index], sizes[index]);
            regions[index] = null;
        }
    }
}
