package org.millrace.net.connection;

import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameHeader;
import org.millrace.net.MemoryRegion;

/** Frames of a connection that are not complete, oldest first. Used by one thread. */
public final class FrameQueue {

    private final InFlight window;
    private final FrameHeader[] headers;
    private final @Nullable MemoryRegion[] regions;
    private final long[] offsets;

    public FrameQueue(int limit) {
        window = new InFlight(limit);
        headers = new FrameHeader[window.slots()];
        for (int i = 0; i < headers.length; i++) {
            headers[i] = new FrameHeader();
        }
        regions = new MemoryRegion[headers.length];
        offsets = new long[headers.length];
    }

    public int slots() {
        return headers.length;
    }

    public boolean isEmpty() {
        return window.isEmpty();
    }

    public boolean isFull() {
        return window.isFull();
    }

    /** Adds a frame, and copies its header. Returns its slot. */
    public int add(FrameHeader header, @Nullable MemoryRegion region, long offset) {
        int slot = window.begin();
        headers[slot].set(header);
        regions[slot] = region;
        offsets[slot] = offset;
        return slot;
    }

    /** {@return the slot of the oldest frame} */
    public int oldest() {
        return window.oldest();
    }

    public FrameHeader header() {
        return headers[window.oldest()];
    }

    public @Nullable MemoryRegion region() {
        return regions[window.oldest()];
    }

    public long offset() {
        return offsets[window.oldest()];
    }

    public void removeOldest() {
        regions[window.finishOldest()] = null;
    }
}
