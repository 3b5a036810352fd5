package org.millrace.net.socket;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.BitSet;
import org.jspecify.annotations.Nullable;
import org.millrace.net.connection.NativeRegion;
import org.millrace.net.connection.OpenResources;

/**
 * Registered memory, accessed through buffers (views) that begin at multiples of 512 MiB.
 *
 * <p>
 * View {@code i} begins at {@code i} times 512 MiB and has the maximum length of a buffer (almost 2 GiB). A payload
 * begins in the first 512 MiB of its view and has at most 1 GiB, so it lies completely in this view. The views belong
 * to the global arena. {@code java.nio} therefore does not acquire and release the user's arena in every call, and
 * another thread may own the memory. The disadvantage is that a use of freed memory is not detected: see
 * {@link org.millrace.net.Network#register}.
 */
final class SocketRegion extends NativeRegion {

    private static final int VIEW_SHIFT = 29;
    /** Maximum length in bytes of a segment that can be converted to a buffer. */
    private static final int LONGEST_VIEW = Integer.MAX_VALUE - 8;

    /**
     * ID of the region: the smallest number that no other open region of the network had when this region was created.
     * The ID is an index into each connection's array of views.
     */
    private final int id;
    private final BitSet ids;

    private SocketRegion(OpenResources network, MemorySegment segment, int id, BitSet ids) {
        super(network, segment, "socket region " + id);
        this.id = id;
        this.ids = ids;
    }

    /** Registers memory with a network. {@code ids} contains the IDs of the network's open regions. */
    public static SocketRegion register(OpenResources network, MemorySegment segment, BitSet ids) {
        synchronized (ids) {
            SocketRegion region = new SocketRegion(network, segment, ids.nextClearBit(0), ids);
            ids.set(region.id);
            return region;
        }
    }

    /** Makes the region's ID available to other regions. */
    @Override
    protected void release() {
        synchronized (ids) {
            ids.clear(id);
        }
    }

    /**
     * Creates a buffer that begins at a multiple of 512 MiB of this memory. The caller may change its position and
     * limit.
     */
    private ByteBuffer newView(int index) {
        long offset = (long) index << VIEW_SHIFT;
        return view().asSlice(offset, Math.min(view().byteSize() - offset, LONGEST_VIEW)).asByteBuffer();
    }

    /** Returns the index of the view that contains a payload at the given offset of the region. */
    private static int viewIndex(long offset) {
        return (int) (offset >>> VIEW_SHIFT);
    }

    public static int viewOffset(long offset) {
        return (int) (offset & (1L << VIEW_SHIFT) - 1);
    }

    /**
     * The views that one connection has of its regions. Many connections and threads may use the same region, but a
     * buffer has only one position. Each connection therefore creates its own view, when it first uses a part of a
     * region.
     */
    static final class Views {

        private @Nullable OfRegion[] regions = new OfRegion[4];

        ByteBuffer view(SocketRegion region, long offset) {
            int id = region.id;
            OfRegion known = id < regions.length ? regions[id] : null;
            if (known == null || known.region != region) {
                known = meet(region);
            }
            return known.view(viewIndex(offset));
        }

        /**
         * Returns a region's views. If a closed region had the same ID, discards the views of the closed region.
         */
        private OfRegion meet(SocketRegion region) {
            int id = region.id;
            if (id >= regions.length) {
                regions = Arrays.copyOf(regions, Math.max(id + 1, regions.length * 2));
            }
            return regions[id] = new OfRegion(region);
        }
    }

    /** A connection's views of one region. Only the used views exist, even if the region is large. */
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
