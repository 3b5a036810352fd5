package org.millrace.gin;

import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameHeader;

/** A frame that is on its way out: its payload is being staged, or it is being sent. Reused. */
final class OutboundFrame {

    final FrameHeader header = new FrameHeader();
    final WindowTransfer transfer = new WindowTransfer();
    /** Whether the bytes go through a staging ring: the frame has no payload. */
    private boolean staged;
    /** How many frames were offered to the network up to this one. */
    private long number;
    /** Of its queue, if a signal is all there may be to do for it at the peer; null otherwise. */
    private @Nullable PathOrder order;
    /** Of the descriptor that is complete when this is sent; null if there is none. */
    private @Nullable PeerQueue queue;
    private int index;

    void clear() {
        staged = false;
        order = null;
        queue = null;
    }

    /** The bytes lie, or will lie, in the staging ring. */
    void staged(long offset, long bytes) {
        staged = true;
        GinHeader.staged(header, offset, bytes);
    }

    /** Its bytes, if it has any, get to where they belong without it. */
    void bringsSignalAtMost(PathOrder of) {
        order = of;
    }

    /** It brings a descriptor's signal, if that has one. */
    void signals(GinDescriptor descriptor) {
        if (descriptor.signals()) {
            GinHeader.signal(header, descriptor.signal, descriptor.signalValue);
        }
    }

    /** A descriptor is complete when it is sent. */
    void completes(PeerQueue of, int descriptor) {
        queue = of;
        index = descriptor;
    }

    /** Does without a frame what is to be done at the peer, if that is possible behind so many frames. */
    boolean isNeedless(long frames) {
        return order != null && (!GinHeader.isSignalled(header) || order.signal(header, frames));
    }

    boolean hasPayload() {
        return transfer.isOpen() && !staged && header.payloadBytes() > 0;
    }

    boolean isReadable() {
        return !transfer.isOpen() || transfer.memory().readable(transfer);
    }

    /** The frame was offered, or is needless behind so many: a source that was copied is free. */
    void offered(long frames) {
        number = frames;
        if (transfer.isOpen() && (staged || transfer.memory().isCopied())) {
            complete();
        }
    }

    /** Whether the network has sent it, and all before it. */
    boolean isSent(long frames) {
        return frames - number >= 0;
    }

    /** The frame was sent: its source was read. */
    void sent() {
        if (transfer.isOpen()) {
            transfer.release();
        }
        complete();
    }

    /** The connection is closed: nobody will say that the frame was sent. */
    void abandon() {
        if (transfer.isOpen()) {
            transfer.abandon();
        }
    }

    private void complete() {
        PeerQueue of = queue;
        if (of != null) {
            of.complete(index);
            queue = null;
        }
    }
}
