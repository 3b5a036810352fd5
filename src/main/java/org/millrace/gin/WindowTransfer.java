package org.millrace.gin;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;
import org.millrace.net.MemoryRegion;

/**
 * A transfer of bytes between the memory of a window and a frame. The object is created once and reused. The
 * {@link WindowMemory} sets the location of the payload, and may store its own data in this object.
 */
public final class WindowTransfer {

    /**
     * Value of {@link #sequence()} for a copy that belongs to no sequence. Such a copy is ordered relative to all other
     * copies.
     */
    public static final int ALL = -1;

    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN);

    /** Window of the open transfer; null if no transfer is open. */
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

    /** Returns the memory of the window that the transfer uses. The transfer must be open. */
    public WindowMemory memory() {
        return window.memory();
    }

    public void release() {
        Window used = window;
        window = null;
        sequence = ALL;
        used.release();
        used.memory().release(this);
    }

    /** Ends the transfer, because its connection is closed and its result is not needed. */
    public void abandon() {
        Window used = window;
        window = null;
        sequence = ALL;
        used.release();
        used.memory().abandon(this);
    }

    /**
     * Sets the location of the payload. Called by the window's memory.
     *
     * @param place       region of the network that contains the payload; null if the bytes do not pass through a
     *                    network
     * @param placeOffset offset of the payload's first byte in the region
     * @param start       offset of the bytes in the window
     * @param length      number of bytes
     */
    public void place(@Nullable MemoryRegion place, long placeOffset, long start, long length) {
        region = place;
        regionOffset = placeOffset;
        offset = start;
        bytes = length;
    }

    /**
     * Returns the region of the network that contains the payload: the window's own region, or a staging buffer.
     * Returns null if the bytes do not pass through a network.
     */
    public @Nullable MemoryRegion region() {
        return region;
    }

    public long regionOffset() {
        return regionOffset;
    }

    /**
     * Stores the bytes of an inline value at the location of the payload. A value of 4 or 8 bytes is stored in one
     * access if its address is aligned, because kernels may poll the value.
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

    /** Returns a number that the window's memory stores for its own use, for example the index of a staging buffer. */
    public int slot() {
        return slot;
    }

    public void slot(int number) {
        slot = number;
    }

    /**
     * Sets the sequence of this transfer's copy. The copy is then ordered only relative to copies of the same sequence
     * and to copies without a sequence. Without this call, the copy is ordered relative to all other copies. Must be
     * called before the transfer is opened.
     *
     * @param number  number of the sequence, 0 or more, the same for all puts of one context to one peer
     * @param ordered whether the copy must be made after all earlier copies of the sequence
     */
    public void sequence(int number, boolean ordered) {
        sequence = number;
        strict = ordered;
    }

    /** Returns the number of the copy's sequence; {@link #ALL} if the copy is ordered relative to all other copies. */
    public int sequence() {
        return sequence;
    }

    /** Returns whether the copy must be made after all earlier copies of its sequence. */
    public boolean isStrict() {
        return strict;
    }

    /** Returns a second number for the memory's own use, for example the number of a copy. */
    public long ticket() {
        return ticket;
    }

    public void ticket(long number) {
        ticket = number;
    }
}
