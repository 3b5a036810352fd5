package org.millrace.net.socket;

import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * One connection's own views of the regions that it uses. A region may serve many connections and threads, and a buffer has one position: so each connection
 * duplicates a view when it first meets it, and never again.
 */
final class RegionViews {

    private SocketRegion[] regions = new SocketRegion[4];
    private ByteBuffer[][] views = new ByteBuffer[4][];

    /** The view that holds a payload that begins at an offset; its position and limit are whatever the last use left. */
    ByteBuffer view(SocketRegion region, long offset) {
        int id = region.id();
        if (id >= regions.length || regions[id] != region) {
            meet(region);
        }
        int index = SocketRegion.viewIndex(offset);
        ByteBuffer view = views[id][index];
        return view != null ? view : (views[id][index] = region.duplicate(index));
    }

    /** A number is given to a new region when its old one is closed, so that what was kept for the old one goes. */
    private void meet(SocketRegion region) {
        int id = region.id();
        if (id >= regions.length) {
            int length = Math.max(id + 1, regions.length * 2);
            regions = Arrays.copyOf(regions, length);
            views = Arrays.copyOf(views, length);
        }
        regions[id] = region;
        views[id] = new ByteBuffer[region.viewCount()];
    }
}
