package org.millrace.proxy;

import org.millrace.abi.ConnectionLayout;
import org.millrace.net.FrameReceiver;
import org.millrace.net.MemoryRegion;
import org.millrace.net.FrameReceiver.Pages;

/**
 * A connection's pages of the bounce buffer: its eight slots of protocol Simple determine the number. Each slot has its
 * own pages, so a page is free when its slot is free.
 */
public final class BouncePages {

    public static final int PAGE_BYTES = 4096;

    private final Pages pages;
    private final int pagesPerSlot;
    private final long slotBytes;

    /**
     * Creates the pages of one connection.
     *
     * @param bounce  the process's bounce buffer; the kernel's source offsets count from its beginning
     * @param offsets unsigned offsets of the pages in the buffer, {@link #needed} of them; the pages must be
     *                consecutive if the network does not scatter
     */
    public BouncePages(MemoryRegion bounce, int[] offsets, long slotBytes) {
        if (offsets.length != needed(slotBytes)) {
            throw new IllegalArgumentException(
                    "slots of " + slotBytes + " bytes need " + needed(slotBytes) + " pages, not " + offsets.length);
        }
        this.pages = new Pages(bounce, offsets, PAGE_BYTES);
        this.pagesPerSlot = offsets.length / ConnectionLayout.SLOTS;
        this.slotBytes = slotBytes;
    }

    /** Returns the number of pages that a connection needs. */
    public static int needed(long slotBytes) {
        return Math.toIntExact((slotBytes + PAGE_BYTES - 1) / PAGE_BYTES * ConnectionLayout.SLOTS);
    }

    /** Returns the first page of a slot. The pages of the following slots follow it. */
    public int first(int slot) {
        return slot * pagesPerSlot;
    }

    /** Returns the maximum length of a payload that begins in a slot. */
    public long room(int slot, long slots) {
        return Math.min(slots, ConnectionLayout.SLOTS - slot) * slotBytes;
    }

    /** Receives the payload of the header that was polled last. */
    public void receive(FrameReceiver receiver, int first) {
        if (receiver.scatters()) {
            receiver.acceptScattered(pages, first);
        } else {
            receiver.accept(pages.region(), pages.offset(first, 0));
        }
    }

    /**
     * Publishes to the kernel the pages that contain a slice's payload.
     *
     * @param bytes length of the payload, more than 0
     */
    public void publish(SliceLists lists, long ordinal, int first, long bytes) {
        lists.begin(ordinal, bytes);
        int[] offsets = pages.offsets();
        int page = first;
        for (long at = 0; at < bytes; at += PAGE_BYTES) {
            lists.piece(offsets[page++], (int) Math.min(PAGE_BYTES, bytes - at), at);
        }
        lists.publish();
    }
}
