package org.millrace.proxy;

import org.millrace.abi.ConnectionLayout;
import org.millrace.net.FrameReceiver;

/**
 * Slices of protocol Simple that arrive in pages instead of their slots, and the lists by which a device gathers them.
 */
public final class GatheredSlices {

    private final BouncePages pages;
    private final SliceLists lists;
    private final long threshold;
    private final long[] numbers = new long[ConnectionLayout.SLOTS];
    private final int[] firstPages = new int[ConnectionLayout.SLOTS];
    private final long[] sizes = new long[ConnectionLayout.SLOTS];
    private long received;
    private long published;

    /** @param threshold bytes below which a slice arrives in its slot */
    public GatheredSlices(BouncePages pages, SliceLists lists, long threshold) {
        this.pages = pages;
        this.lists = lists;
        this.threshold = threshold;
    }

    /** Whether the device gathers a slice, which it decides for itself alike. */
    boolean takes(long bytes) {
        return bytes > 0 && bytes >= threshold;
    }

    /**
     * Gives the payload of the header last polled its pages.
     *
     * @param number of the slice, as the device counts them
     */
    void receive(FrameReceiver receiver, long number, long step, long bytes) {
        int index = ConnectionLayout.slot(received++);
        numbers[index] = number;
        firstPages[index] = pages.first(ConnectionLayout.slot(step));
        sizes[index] = bytes;
        pages.receive(receiver, firstPages[index]);
    }

    /** The oldest slice that was received has arrived whole: shows the device where. */
    void arrived() {
        int index = ConnectionLayout.slot(published++);
        pages.publish(lists, numbers[index], firstPages[index], sizes[index]);
    }
}
