package org.millrace.gin;

import org.millrace.net.MemoryRegion;

/**
 * Bytes on their way between a window's memory and a frame. Made once and used again and again; a {@link WindowMemory}
 * says where its payload lies, and may keep what it needs to know of it here.
 */
public final class Transfer {

    private Window window;
    private MemoryRegion region;
    private long regionOffset;
    private long offset;
    private long bytes;
    private int slot;
    private long ticket;

    /** A transfer of nothing. */
    public Transfer() {}

    void window(Window used) {
        window = used;
    }

    Window window() {
        return window;
    }

    WindowMemory memory() {
        return window.memory();
    }

    /**
     * Says where the payload lies; called by the window's memory.
     *
     * @param place       memory of the network
     * @param placeOffset of the payload's first byte
     * @param start       of the bytes in the window
     * @param length      number of bytes
     */
    public void place(MemoryRegion place, long placeOffset, long start, long length) {
        region = place;
        regionOffset = placeOffset;
        offset = start;
        bytes = length;
    }

    /**
     * Where the payload lies.
     *
     * @return the network's memory: the window's own, or a staging buffer
     */
    public MemoryRegion region() {
        return region;
    }

    /**
     * Where in the region the payload begins.
     *
     * @return an offset in bytes
     */
    public long regionOffset() {
        return regionOffset;
    }

    /**
     * Where in the window the bytes begin.
     *
     * @return an offset in bytes
     */
    public long offset() {
        return offset;
    }

    /**
     * How many there are.
     *
     * @return bytes
     */
    public long bytes() {
        return bytes;
    }

    /**
     * A number of the memory's own, for instance of a staging buffer.
     *
     * @return what was last set
     */
    public int slot() {
        return slot;
    }

    /**
     * Sets the memory's own number.
     *
     * @param number any
     */
    public void slot(int number) {
        slot = number;
    }

    /**
     * Another number of the memory's own, for instance how many copies had been enqueued.
     *
     * @return what was last set
     */
    public long ticket() {
        return ticket;
    }

    /**
     * Sets the memory's other number.
     *
     * @param number any
     */
    public void ticket(long number) {
        ticket = number;
    }
}
