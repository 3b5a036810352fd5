package org.millrace.plugin.unpack;

import java.util.BitSet;
import java.util.Random;
import org.millrace.MillraceException;
import org.millrace.config.PluginSettings;
import org.millrace.net.MemoryRegion;
import org.millrace.proxy.unpack.BouncePages;

/**
 * The pages of a process that data arrives in. There is one buffer, as a kernel knows one for all its connections; each
 * connection has pages of its own, so that none waits for another's. Safe from any thread.
 */
final class BounceBuffer {

    private final MemoryRegion region;
    private final BitSet used = new BitSet();
    private final int pages;
    private final Random order = new Random(0x5eed);

    BounceBuffer(MemoryRegion region) {
        this.region = region;
        this.pages = Math.toIntExact(region.segment().byteSize() / BouncePages.PAGE_BYTES);
    }

    long bytes() {
        return region.segment().byteSize();
    }

    /**
     * Takes pages for a connection's slots.
     *
     * @param scattered whether they need not lie behind one another; then they do not
     */
    synchronized Allocation allocate(long slotBytes, boolean scattered) {
        int count = BouncePages.needed(slotBytes);
        int first = used.nextClearBit(0);
        for (int end = used.nextSetBit(first); end >= 0 && end - first < count; end = used.nextSetBit(first)) {
            first = used.nextClearBit(end);
        }
        if (count > pages - first) {
            throw new MillraceException("the bounce buffer of " + (bytes() >> 20) + " MiB has no room for "
                    + ((long) count * BouncePages.PAGE_BYTES >> 20) + " MiB of another connection; set "
                    + PluginSettings.UNPACK_MIB.name() + " to more, or NCCL_BUFFSIZE to less");
        }
        used.set(first, first + count);
        int[] offsets = new int[count];
        for (int i = 0; i < count; i++) {
            offsets[i] = (int) ((long) (first + i) * BouncePages.PAGE_BYTES);
        }
        if (scattered) {
            shuffle(offsets);
        }
        return new Allocation(first, count, new BouncePages(region, offsets, slotBytes));
    }

    private void shuffle(int[] offsets) {
        for (int i = offsets.length - 1; i > 0; i--) {
            int other = order.nextInt(i + 1);
            int offset = offsets[i];
            offsets[i] = offsets[other];
            offsets[other] = offset;
        }
    }

    synchronized void free(Allocation of) {
        used.clear(of.first, of.first + of.count);
    }

    void close() {
        region.close();
    }

    /** What a connection has. */
    record Allocation(int first, int count, BouncePages pages) {
    }
}
