package org.millrace.proxy;

import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameHeader;
import org.millrace.net.MemoryRegion;

/** Tells a {@link SendProxy} what the device posted next. Used by the proxy's thread alone. */
abstract sealed class SendStepSource permits OperationSendSource, MemorySendSource {

    /** First step of the frame; its slot holds the payload. */
    long step;
    /** First step after the frame. */
    long end;
    /** Payload's length in bytes. */
    long size;
    /** Where the payload lies. */
    @Nullable
    MemoryRegion region;
    /** Of the payload in {@link #region}, in bytes. */
    long offset;

    /**
     * Looks for the next posted step. Looking again without {@link #taken()} gives the same answer, or a longer one.
     *
     * @return true if there is one: the fields above and {@link #protocol} describe it
     */
    abstract boolean next();

    /** NCCL's id of the protocol the payload is laid out in. */
    abstract int protocol();

    /** Adds to a frame's header what the peer needs beyond step, end and protocol. */
    abstract void describe(FrameHeader header);

    /** The step went to the network: go on after {@link #end}. */
    abstract void taken();

    /**
     * The network has read a frame that was taken, and {@code connFifo} is empty there: the device gets the slots back
     * up to a step.
     */
    abstract void released(long endStep);

    /** Whether everything that was announced has been taken. */
    abstract boolean drained();
}
