package org.millrace.net.socket;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.BitSet;
import org.jspecify.annotations.Nullable;
import org.millrace.net.connection.NativeRegion;
import org.millrace.net.connection.OpenResources;

/**
 * Registered memory, and buffers over it, one for each GiB that is used.
 *
 * <p>
 * View {@code i} begins at GiB {@code i} and is as long as a buffer can be (almost 2 GiB), so that a payload of up to 1
 * GiB lies within one view wherever it begins. They belong to the global arena: {@code java.nio} then neither takes nor
 * gives back a hold on the user's arena with every call, and the memory may be confined to a thread that is not ours.
 * The price is that nothing notices memory that is freed too early: see {@link org.millrace.net.Network#register}.
 */
final class SocketRegion extends NativeRegion {

    private static final int VIEW_SHIFT = 30;
    /** As much as a segment may have to be made a buffer. */
    private static final int LONGEST_VIEW = Integer.MAX_VALUE - 8;

    /**
     * The smallest number that no other open region of the network has: connections keep their views in an array by it.
     */
    private final int id;
    private final BitSet ids;

    private SocketRegion(OpenResources network, MemorySegment segment, int id, BitSet ids) {
        super(network, segment, "socket region " + id);
        this.id = id;
        this.ids = ids;
    }

    /** Registers memory with a network, whose open regions have these ids. */
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

    /** A buffer of the caller's own over a GiB and what follows it. */
    private ByteBuffer newView(int index) {
        long offset = (long) index << VIEW_SHIFT;
        return view().asSlice(offset, Math.min(view().byteSize() - offset, LONGEST_VIEW)).asByteBuffer();
    }

    /** Which view holds a payload that begins at an offset. */
    private static int viewIndex(long offset) {
        return (int) (offset >>> VIEW_SHIFT);
    }

    /** Where in its view a payload begins. */
    public static int viewOffset(long offset) {
        return (int) (offset & (1L << VIEW_SHIFT) - 1);
    }

    /**
     * One connection's own views of the regions that it uses. A region may serve many connections and threads, and a
     * buffer has one position: so each connection makes a view when it first needs it, and never again.
     */
    static final class Views {

        private @Nullable OfRegion[] regions = new OfRegion[4];

        /** The view that holds a payload that begins at an offset. */
        ByteBuffer view(SocketRegion region, long offset) {
            int id = region.id;
            OfRegion known = id < regions.length ? regions[id] : null;
            if (known == null || known.region != region) {
                known = meet(region);
            }
            return known.view(viewIndex(offset));
        }

        /** An id is given to a new region when its old one is closed, so that what was kept for the old one goes. */
        private OfRegion meet(SocketRegion region) {
            int id = region.id;
            if (id >= regions.length) {
                regions = Arrays.copyOf(regions, Math.max(id + 1, regions.length * 2));
            }
            return regions[id] = new OfRegion(region);
        }
    }

    /** A connection's views of one region. Few are ever in use, however large it is. */
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
