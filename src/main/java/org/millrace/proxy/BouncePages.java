package org.millrace.proxy;

import org.millrace.abi.ConnectionLayout;
import org.millrace.net.FrameReceiver;
import org.millrace.net.MemoryRegion;
import org.millrace.net.FrameReceiver.Pages;

/**
 * A connection's pages of the bounce buffer: as many as its eight slots of protocol Simple need. A slot's pages are its
 * own, so that a page is free when the slot is.
 */
public final class BouncePages {

    public static final int PAGE_BYTES = 4096;

    private final Pages pages;
    private final int pagesPerSlot;
    private final long slotBytes;

    /**
     * Pages of one connection.
     *
     * @param bounce  the process' bounce buffer; what the kernel's source offsets count from
     * @param offsets of the pages in it, unsigned: {@link #needed} of them; one behind the other if the network does
     *                not scatter
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

    /** How many pages a connection needs. */
    public static int needed(long slotBytes) {
        return Math.toIntExact((slotBytes + PAGE_BYTES - 1) / PAGE_BYTES * ConnectionLayout.SLOTS);
    }

    /** The first page of a slot; those of the slots behind it follow. */
    public int first(int slot) {
        return slot * pagesPerSlot;
    }

    /** How long a payload may be that begins in a slot. */
    public long room(int slot, long slots) {
        return Math.min(slots, ConnectionLayout.SLOTS - slot) * slotBytes;
    }

    /** Receives the payload of the header last polled. */
    public void receive(FrameReceiver receiver, int first) {
        if (receiver.scatters()) {
            receiver.acceptScattered(pages, first);
        } else {
            receiver.accept(pages.region(), pages.offset(first, 0));
        }
    }

    /**
     * Tells the kernel where a slice's payload lies.
     *
     * @param bytes its length, more than 0
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
