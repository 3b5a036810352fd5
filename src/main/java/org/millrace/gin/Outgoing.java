package org.millrace.gin;

import org.millrace.net.FrameHeader;

/** A frame that is on its way out: its payload is being staged, or it is being sent. Reused. */
final class Outgoing {

    final FrameHeader header = new FrameHeader();
    final Transfer transfer = new Transfer();
    /** Whether the transfer is open. */
    boolean open;
    private boolean staged;
    /** How many frames were offered to the network up to this one. */
    private long number;
    /** Of the descriptor, if there is nothing left to do for it at the peer but to signal, if even that; or null. */
    private GinContext context;
    private PeerSignals signals;
    /** Whose descriptor is complete when this is sent, or null. */
    PeerQueue queue;
    int index;

    void clear() {
        open = false;
        staged = false;
        context = null;
        queue = null;
    }

    /**
     * Begins to make bytes readable for the peer: in the staging ring, or as the payload if there is none. False if
     * there is no room now.
     */
    boolean begin(StagingOut staging, Window source, long offset, long bytes) {
        if (staging != null) {
            return staging.begin(this, source, offset, bytes);
        }
        open = source.openRead(transfer, offset, bytes);
        header.payloadBytes(bytes);
        return open;
    }

    /** The bytes go through a staging ring: the transfer is open, and the frame has no payload. */
    void stage() {
        open = true;
        staged = true;
    }

    /** Whatever is to be done is done without it, and without the peer. */
    void bringsNothing(GinContext of) {
        context = of;
        signals = null;
        GinHeader.nothing(header);
    }

    /** Its bytes, if it has any, get to the peer without it. */
    void bringsSignalAtMost(GinContext of, int peer) {
        context = of;
        signals = of.reached(peer);
    }

    /** Does without a frame what is to be done at the peer, if that is possible behind so many frames. */
    boolean isNeedless(long frames) {
        if (context == null) {
            return false;
        }
        if (!GinHeader.isSignalled(header)) {
            return true;
        }
        if (signals == null || !signals.add(frames, (int) GinHeader.signal(header), GinHeader.value(header))) {
            return false;
        }
        context.countReached();
        return true;
    }

    boolean hasPayload() {
        return open && !staged && header.payloadBytes() > 0;
    }

    boolean isReadable() {
        return !open || transfer.memory().readable(transfer);
    }

    /** The frame was offered, or is needless behind so many: a source that was copied is free. */
    void offered(long frames) {
        number = frames;
        if (open && (staged || transfer.memory().isCopied())) {
            complete();
        }
    }

    /** Whether the network has sent it, and all before it. */
    boolean isSent(long frames) {
        return frames - number >= 0;
    }

    /** The frame was sent: its source was read. */
    void sent() {
        if (open) {
            Window.release(transfer);
            open = false;
        }
        complete();
    }

    /** The connection is closed: nobody will say that the frame was sent. */
    void abandon() {
        if (open) {
            Window.abandon(transfer);
            open = false;
        }
    }

    private void complete() {
        if (queue != null) {
            queue.complete(index);
            queue = null;
        }
    }
}
