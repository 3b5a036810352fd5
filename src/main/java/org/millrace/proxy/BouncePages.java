package org.millrace.proxy;

import org.millrace.abi.ConnectionLayout;
import org.millrace.net.FrameReceiver;
import org.millrace.net.MemoryRegion;
import org.millrace.net.FrameReceiver.Pages;

/**
 * The pages of the bounce buffer that belong to one connection. Each of the connection's eight slots of protocol Simple
 * has its own pages, with room for the slot's bytes. The pages of a slot are free when the slot is free.
 */
public final class BouncePages {

    public static final int PAGE_BYTES = 4096;

    private final Pages pages;
    private final int pagesPerSlot;
    private final long slotBytes;

    /**
     * Creates the pages of one connection.
     *
     * @param bounce    bounce buffer of the process. The source offsets that a kernel reads are relative to the
     *                  buffer's beginning.
     * @param offsets   offsets of the {@link #needed} pages in the buffer, unsigned. If the network does not scatter,
     *                  the pages must be consecutive.
     * @param slotBytes size of a slot of protocol Simple
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

    /**
     * Returns the number of pages that a connection needs.
     *
     * @param slotBytes size of a slot of protocol Simple
     */
    public static int needed(long slotBytes) {
        return Math.toIntExact((slotBytes + PAGE_BYTES - 1) / PAGE_BYTES * ConnectionLayout.SLOTS);
    }

    /** Returns the index of a slot's first page. The pages of the next slot follow the pages of this slot. */
    public int first(int slot) {
        return slot * pagesPerSlot;
    }

    /**
     * Returns the maximum length of a payload that begins in a slot, in bytes.
     *
     * @param slots number of steps of the payload's frame
     */
    public long room(int slot, long slots) {
        return Math.min(slots, ConnectionLayout.SLOTS - slot) * slotBytes;
    }

    /**
     * Makes a receiver store a payload in pages. The payload belongs to the header that the receiver returned last.
     *
     * @param first index of the first page
     */
    public void receive(FrameReceiver receiver, int first) {
        if (receiver.scatters()) {
            receiver.acceptScattered(pages, first);
        } else {
            receiver.accept(pages.region(), pages.offset(first, 0));
        }
    }

    /**
     * Publishes to the kernel the list of the pages that contain a slice's payload.
     *
     * @param ordinal ordinal of the slice
     * @param first   index of the first page
     * @param bytes   length of the payload, more than 0
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
