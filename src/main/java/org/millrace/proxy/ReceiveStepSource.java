package org.millrace.proxy;

import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;

/** Determines for a {@link ReceiveProxy} whether and where a frame may be received. Used only by the proxy's thread. */
public interface ReceiveStepSource {

    /**
     * Compares a frame's header with the expected step.
     *
     * @return true if it is the next step; false if this is not known yet
     * @throws ProxyException if the peer sends another frame
     */
    boolean admits(FrameHeader header);

    /** Assigns a place to the payload of the admitted frame. */
    void receive(FrameReceiver receiver);

    /** Records that the admitted frame is being received, and advances to the next expected step. */
    void taken();

    /**
     * Completes the oldest frame that was taken, which has arrived. Data that does not lie yet where the device reads
     * it is copied there or flushed. The device is notified next.
     */
    void arrived();

    /**
     * Returns the resources of emptied slots, if they do not belong to the connection.
     *
     * @param head the device's head: all steps before it are emptied; passed in every pass
     */
    default void consumed(long head) {}

    /** {@return whether everything that was announced has been taken; also true if nothing is announced} */
    boolean drained();
}
