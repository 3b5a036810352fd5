package org.millrace.gin;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;
import org.millrace.net.MemoryRegion;

/**
 * Bytes in transfer between a window's memory and a frame. The object is made once and reused. A {@link WindowMemory}
 * sets the location of its payload, and may store its own data here.
 */
public final class WindowTransfer {

    /** Value instead of a sequence number. */
    public static final int ALL = -1;

    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN);

    /** Window of an open transfer; null if the transfer is not open. */
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

    /** Returns the memory of the window that an open transfer uses. */
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

    /** Abandons the transfer because its connection is closed and no thread waits for it. */
    public void abandon() {
        Window used = window;
        window = null;
        sequence = ALL;
        used.letGo();
        used.memory().abandon(this);
    }

    /**
     * Sets the location of the payload. Called by the window's memory.
     *
     * @param place       memory of the network; null if the payload does not pass through network memory
     * @param placeOffset offset of the payload's first byte
     * @param start       offset of the bytes in the window
     */
    public void place(@Nullable MemoryRegion place, long placeOffset, long start, long length) {
        region = place;
        regionOffset = placeOffset;
        offset = start;
        bytes = length;
    }

    /** Returns the network's memory that contains the payload: the window's own, or a staging buffer. */
    public @Nullable MemoryRegion region() {
        return region;
    }

    public long regionOffset() {
        return regionOffset;
    }

    /**
     * Stores a value's bytes at the location where the payload would arrive. An aligned value of 4 or 8 bytes is stored
     * in one access, for kernels that poll it.
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

    /** Returns the offset of the bytes in the window. */
    public long offset() {
        return offset;
    }

    public long bytes() {
        return bytes;
    }

    /** Returns a number for use by the memory, for instance of a staging buffer. */
    public int slot() {
        return slot;
    }

    public void slot(int number) {
        slot = number;
    }

    /**
     * Sets the sequence of copies that keep their order with this transfer's copy. Must be called before the transfer
     * is opened. Without this call, the copy keeps its order with all others.
     *
     * @param number  0 or more, the same for all puts of one context to one peer
     * @param ordered whether the copy must not be made before the earlier copies of the sequence
     */
    public void sequence(int number, boolean ordered) {
        sequence = number;
        strict = ordered;
    }

    /** Returns the number of the copy's sequence; {@link #ALL} if the copy keeps its order with all others. */
    public int sequence() {
        return sequence;
    }

    /** Returns whether the copy must not be made before the earlier copies of its sequence. */
    public boolean isStrict() {
        return strict;
    }

    /** Returns another number for use by the memory, for instance the number of enqueued copies. */
    public long ticket() {
        return ticket;
    }

    public void ticket(long number) {
        ticket = number;
    }
}
