package org.millrace.proxy;

import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.MemoryRegion;

/** Tells a {@link ReceiveProxy} whether and where a frame may be received. Used by the proxy's thread alone. */
interface ReceiveStepSource {

    /**
     * Holds a frame's header against what is expected.
     *
     * @return true if it is the next step; false if it cannot be told yet
     * @throws ProxyException if the peer sends something else
     */
    boolean admits(FrameHeader header);

    /** Where the payload of the admitted frame goes. */
    MemoryRegion region();

    /** Of the payload in {@link #region()}, in bytes. */
    long offset();

    /** Gives the payload of the admitted frame its place. */
    default void receive(FrameReceiver receiver) {
        receiver.accept(region(), offset());
    }

    /** The admitted frame is being received: expect the next one. */
    void taken();

    /**
     * The oldest frame that was taken has arrived whole: its data is put where the device looks for it. The device is
     * told next.
     */
    void arrived();

    /**
     * How far the device has emptied its slots; asked for whenever nothing else is known, so that what they took can be
     * given back.
     */
    void consumed(long head);

    /** Whether everything that was announced has been taken. */
    boolean drained();
}
