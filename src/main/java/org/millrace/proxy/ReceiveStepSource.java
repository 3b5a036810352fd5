package org.millrace.proxy;

import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;

/** Tells a {@link ReceiveProxy} whether and where a frame may be received. Used by the proxy's thread alone. */
public interface ReceiveStepSource {

    /**
     * Holds a frame's header against what is expected.
     *
     * @return true if it is the next step; false if it cannot be told yet
     * @throws ProxyException if the peer sends something else
     */
    boolean admits(FrameHeader header);

    /** Gives the payload of the admitted frame its place. */
    void receive(FrameReceiver receiver);

    /** The admitted frame is being received: expect the next one. */
    void taken();

    /**
     * The oldest frame that was taken has arrived whole: its data is put where the device looks for it. The device is
     * told next.
     */
    void arrived();

    /**
     * Gives back what emptied slots took, if they are not the connection's own.
     *
     * @param head how far the device has emptied its slots; told in every pass
     */
    default void consumed(long head) {}

    /** {@return whether everything that was announced has been taken; true also where nothing is announced} */
    boolean drained();
}
