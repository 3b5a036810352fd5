package org.millrace.proxy;

import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameHeader;
import org.millrace.net.MemoryRegion;

/** Finds for a {@link SendProxy} the next step that the device has posted. Proxy's thread only. */
abstract sealed class SendStepSource permits OperationSendSource, MemorySendSource {

    /** First step of the frame. Its slot contains the payload. */
    long step;
    /** First step after the frame. */
    long end;
    /** Length of the payload in bytes. */
    long size;
    /** Region that contains the payload. */
    @Nullable
    MemoryRegion region;
    /** Offset of the payload in {@link #region}, in bytes. */
    long offset;

    /**
     * Searches for the next posted step. The caller calls {@link #taken()} when the network has accepted the frame.
     * Without that call, this method finds the same step again, perhaps with a longer frame.
     *
     * @return true if a step was found; the fields above and {@link #protocol} then describe the step
     */
    abstract boolean next();

    /** Returns NCCL's id of the protocol that defines the payload's layout. */
    abstract int protocol();

    /**
     * Sets the words of a frame's header that depend on the kind of source. These are all words except step, end and
     * protocol.
     */
    abstract void describe(FrameHeader header);

    /** Records that the network has accepted the frame. The next search begins at {@link #end}. */
    abstract void taken();

    /**
     * Returns the slots of all steps before {@code end} to the device. Called after the network has read the oldest
     * frame in flight and the frame's {@code connFifo} entries are empty.
     */
    abstract void released(long endStep);

    /**
     * Returns whether the proxy continues after the peer has closed the connection. The proxy then returns the credits
     * of steps without data. The peer does not need steps without data.
     */
    abstract boolean continuesWithoutPeer();

    /** Returns whether the network has accepted all steps that were announced or posted. */
    abstract boolean drained();
}
