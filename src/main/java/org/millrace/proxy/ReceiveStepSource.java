package org.millrace.proxy;

import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.MemoryRegion;
import org.millrace.proxy.spi.ProxyException;

/** Determines for a {@link ReceiveProxy} whether and where a frame is received. Proxy's thread only. */
public interface ReceiveStepSource {

    /**
     * Checks whether a frame may be received now. Compares its header with the expected step.
     *
     * @return true if the frame may be received; false if the caller must ask again later
     * @throws ProxyException if the header does not match the expected step
     */
    boolean admits(FrameHeader header);

    /** Sets the destination for the payload of the frame that {@link #admits} has admitted. */
    void receive(FrameReceiver receiver);

    /**
     * {@return region of the slot in which the device finds the payload of the frame that {@link #admits} has admitted;
     * null if the payload is stored in the user's memory or in pages}
     */
    @Nullable
    MemoryRegion slotRegion();

    /** {@return offset of the payload's slot in {@link #slotRegion}, in bytes} */
    long slotOffset();

    /** Records that the admitted frame is being received. The next expected step is the step after this frame. */
    void taken();

    /**
     * Completes the oldest frame that is being received, after its payload has arrived. If necessary, copies the data
     * to the location that the device reads, or flushes the data. The caller then notifies the device.
     */
    void arrived();

    /**
     * Returns the resources of freed slots to their pool. Resources that belong to the connection stay. Called in every
     * pass.
     *
     * @param head the device's head: the device has freed all steps before it
     */
    default void consumed(long head) {}

    /**
     * {@return whether the frames of all announced operations were accepted, and the source holds no resource for a
     * step; true also if no operations are announced}
     */
    boolean drained();
}
