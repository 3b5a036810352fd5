package org.millrace.proxy;

import org.millrace.net.FrameReceiver;

/** Where slices of protocol Simple arrive that a device gathers, instead of in their slots. */
interface SlicePages {

    /** {@return whether the device gathers a slice, which it decides for itself alike} */
    boolean takes(long bytes);

    /**
     * Gives the payload of the header last polled its pages.
     *
     * @param number of the slice, as the device counts them
     */
    void receive(FrameReceiver receiver, long number, long step, long bytes);

    /** The oldest slice that was received has arrived whole: shows the device where. */
    void arrived();
}
