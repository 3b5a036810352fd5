package org.millrace.gin;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;
import org.millrace.net.MemoryRegion;

/**
 * Bytes on their way between a window's memory and a frame. Made once and used again and again; a {@link WindowMemory}
 * says where its payload lies, and may keep what it needs to know of it here.
 */
public final class WindowTransfer {

    /** Instead of a sequence. */
    public static final int ALL = -1;

    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN);

    /** While the transfer is open. */
    private @Nullable Window window;
    private @Nullable MemoryRegion region;
    private long regionOffset;
    private long offset;
    private long bytes;
    private int slot;
    private int sequence = ALL;
    private boolean strict;
    private long ticket;

    public boolean isOpen() {
        return window != null;
    }

    void open(Window used) {
        window = used;
    }

    /** The memory of the window that an open transfer uses. */
    public WindowMemory memory() {
        return window.memory();
    }

    public void release() {
        Window used = window;
        window = null;
        sequence = ALL;
        used.letGo();
        used.memory().release(this);
    }

    /** Nobody waits for the transfer any more: its connection is closed. */
    public void abandon() {
        Window used = window;
        window = null;
        sequence = ALL;
        used.letGo();
        used.memory().abandon(this);
    }

    /**
     * Says where the payload lies; called by the window's memory.
     *
     * @param place       memory of the network; null if the payload does not go through any
     * @param placeOffset of the payload's first byte
     * @param start       of the bytes in the window
     */
    public void place(@Nullable MemoryRegion place, long placeOffset, long start, long length) {
        region = place;
        regionOffset = placeOffset;
        offset = start;
        bytes = length;
    }

    /** The network's memory where the payload lies: the window's own, or a staging buffer. */
    public @Nullable MemoryRegion region() {
        return region;
    }

    public long regionOffset() {
        return regionOffset;
    }

    /**
     * Puts a value's bytes where the payload would arrive: one of 4 or 8 bytes that lies at a multiple of that at once,
     * for those who poll for it.
     */
    public void storeInline(long value) {
        MemorySegment place = region.segment();
        boolean isAligned = (place.address() + regionOffset) % bytes == 0;
        if (bytes == Long.BYTES && isAligned) {
            place.set(LONG, regionOffset, value);
        } else if (bytes == Integer.BYTES && isAligned) {
            place.set(INT, regionOffset, (int) value);
        } else {
            for (int i = 0; i < bytes; i++) {
                place.set(ValueLayout.JAVA_BYTE, regionOffset + i, (byte) (value >>> 8 * i));
            }
        }
    }

    /** Where in the window the bytes begin. */
    public long offset() {
        return offset;
    }

    public long bytes() {
        return bytes;
    }

    /** A number of the memory's own, for instance of a staging buffer. */
    public int slot() {
        return slot;
    }

    public void slot(int number) {
        slot = number;
    }

    /**
     * Says before it is opened which others its copy keeps its order with; with all of them if this is not called.
     *
     * @param number  0 or more, the same for all that one context puts to one peer
     * @param ordered whether it must not be made before the others of the sequence
     */
    public void sequence(int number, boolean ordered) {
        sequence = number;
        strict = ordered;
    }

    /** Which others its copy keeps its order with; {@link #ALL} of them if there is no number. */
    public int sequence() {
        return sequence;
    }

    /** Whether its copy must not be made before the others of its sequence. */
    public boolean isStrict() {
        return strict;
    }

    /** Another number of the memory's own, for instance how many copies had been enqueued. */
    public long ticket() {
        return ticket;
    }

    public void ticket(long number) {
        ticket = number;
    }
}
