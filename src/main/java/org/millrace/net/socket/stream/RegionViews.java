package org.millrace.net.socket.stream;

import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * One connection's own views of the regions that it uses. A region may serve many connections and threads, and a buffer
 * has one position: so each connection makes a view when it first needs it, and never again.
 */
public final class RegionViews {

    /** Those of one region. Few are ever in use, however large it is. */
    private static final class Views {

        private final SocketRegion region;
        private int[] indexes = new int[1];
        private ByteBuffer[] views = new ByteBuffer[1];
        private int count;

        Views(SocketRegion region) {
            this.region = region;
        }

        public ByteBuffer view(int index) {
            for (int i = 0; i < count; i++) {
                if (indexes[i] == index) {
                    return views[i];
                }
            }
            return add(index);
        }

        private ByteBuffer add(int index) {
            if (count == indexes.length) {
                indexes = Arrays.copyOf(indexes, 2 * count);
                views = Arrays.copyOf(views, 2 * count);
            }
            indexes[count] = index;
            return views[count++] = region.newView(index);
        }
    }

    private Views[] regions = new Views[4];

    /**
     * The view that holds a payload that begins at an offset; its position and limit are whatever the last use left.
     */
    public ByteBuffer view(SocketRegion region, long offset) {
        int id = region.id();
        if (id >= regions.length || regions[id] == null || regions[id].region != region) {
            meet(region);
        }
        return regions[id].view(SocketRegion.viewIndex(offset));
    }

    /** A number is given to a new region when its old one is closed, so that what was kept for the old one goes. */
    private void meet(SocketRegion region) {
        int id = region.id();
        if (id >= regions.length) {
            regions = Arrays.copyOf(regions, Math.max(id + 1, regions.length * 2));
        }
        regions[id] = new Views(region);
    }
}
