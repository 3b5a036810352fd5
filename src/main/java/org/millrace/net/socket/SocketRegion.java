package org.millrace.net.socket;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.BitSet;
import org.jspecify.annotations.Nullable;
import org.millrace.net.connection.NativeRegion;
import org.millrace.net.connection.OpenResources;

/**
 * Registered memory, with a buffer for each GiB in use.
 *
 * <p>
 * View {@code i} begins at GiB {@code i} and has the maximum length of a buffer (almost 2 GiB). A payload of up to 1
 * GiB therefore lies within one view, wherever it begins. The views belong to the global arena: {@code java.nio} then
 * does not acquire and release the user's arena with every call, and the memory may be confined to another thread. The
 * price is that a use after free is not detected: see {@link org.millrace.net.Network#register}.
 */
final class SocketRegion extends NativeRegion {

    private static final int VIEW_SHIFT = 30;
    /** Maximum length of a segment that can become a buffer. */
    private static final int LONGEST_VIEW = Integer.MAX_VALUE - 8;

    /**
     * The smallest number that no other open region of the network has. It is the index of the connections' views in an
     * array.
     */
    private final int id;
    private final BitSet ids;

    private SocketRegion(OpenResources network, MemorySegment segment, int id, BitSet ids) {
        super(network, segment, "socket region " + id);
        this.id = id;
        this.ids = ids;
    }

    /** Registers memory with a network. {@code ids} holds the IDs of its open regions. */
    public static SocketRegion register(OpenResources network, MemorySegment segment, BitSet ids) {
        synchronized (ids) {
            SocketRegion region = new SocketRegion(network, segment, ids.nextClearBit(0), ids);
            ids.set(region.id);
            return region;
        }
    }

    /** Frees the region's id for another region. */
    @Override
    protected void release() {
        synchronized (ids) {
            ids.clear(id);
        }
    }

    /** Returns a new buffer for the caller, over a GiB and the memory behind it. */
    private ByteBuffer newView(int index) {
        long offset = (long) index << VIEW_SHIFT;
        return view().asSlice(offset, Math.min(view().byteSize() - offset, LONGEST_VIEW)).asByteBuffer();
    }

    /** Returns the index of the view for a payload that begins at an offset. */
    private static int viewIndex(long offset) {
        return (int) (offset >>> VIEW_SHIFT);
    }

    /** Returns a payload's offset in its view. */
    public static int viewOffset(long offset) {
        return (int) (offset & (1L << VIEW_SHIFT) - 1);
    }

    /**
     * One connection's own views of its regions. A region may serve many connections and threads, and a buffer has one
     * position. Each connection therefore creates a view at its first use, once.
     */
    static final class Views {

        private @Nullable OfRegion[] regions = new OfRegion[4];

        /** Returns the view for a payload that begins at an offset. */
        ByteBuffer view(SocketRegion region, long offset) {
            int id = region.id;
            OfRegion known = id < regions.length ? regions[id] : null;
            if (known == null || known.region != region) {
                known = meet(region);
            }
            return known.view(viewIndex(offset));
        }

        /** A closed region's ID is reused for a new region, so the old region's views are discarded. */
        private OfRegion meet(SocketRegion region) {
            int id = region.id;
            if (id >= regions.length) {
                regions = Arrays.copyOf(regions, Math.max(id + 1, regions.length * 2));
            }
            return regions[id] = new OfRegion(region);
        }
    }

    /** A connection's views of one region. Few are in use, however large the region is. */
    private static final class OfRegion {

        private final SocketRegion region;
        private int[] indexes = new int[1];
        private ByteBuffer[] views = new ByteBuffer[1];
        private int count;

        OfRegion(SocketRegion region) {
            this.region = region;
        }

        ByteBuffer view(int index) {
            for (int i = 0; i < count; i++) {
                if (indexes[i] == index) {
                    return views[i];
                }
            }
            if (count == indexes.length) {
                indexes = Arrays.copyOf(indexes, 2 * count);
                views = Arrays.copyOf(views, 2 * count);
            }
            indexes[count] = index;
            return views[count++] = region.newView(index);
        }
    }
}
