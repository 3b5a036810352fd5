package org.millrace.proxy;

import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameHeader;
import org.millrace.net.MemoryRegion;

/** Finds for a {@link SendProxy} the next step that the device posted. Used only by the proxy's thread. */
abstract sealed class SendStepSource permits OperationSendSource, MemorySendSource {

    /** First step of the frame; its slot holds the payload. */
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
     * Searches for the next posted step. A further call without {@link #taken()} returns the same step, or a longer
     * frame.
     *
     * @return true if a step was found; the fields above and {@link #protocol} describe it
     */
    abstract boolean next();

    /** Returns NCCL's id of the protocol that defines the payload's layout. */
    abstract int protocol();

    /** Adds to a frame's header the words that the peer needs besides step, end and protocol. */
    abstract void describe(FrameHeader header);

    /** Records that the network has accepted the step. The source continues after {@link #end}. */
    abstract void taken();

    /**
     * Returns the slots up to a step to the device. The network has read the frame that was taken, and its
     * {@code connFifo} entries are empty.
     */
    abstract void released(long endStep);

    /** Returns whether steps without data are still taken, and their credits returned, after the peer has left. */
    abstract boolean continuesWithoutPeer();

    /** Returns whether everything that was announced has been taken. */
    abstract boolean drained();
}
