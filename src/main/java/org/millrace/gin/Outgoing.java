package org.millrace.gin;

import org.millrace.net.FrameHeader;

/** A frame that is on its way out: its payload is being staged, or it is being sent. Reused. */
final class Outgoing {

    final FrameHeader header = new FrameHeader();
    final Transfer transfer = new Transfer();
    /** Whether the transfer is open. */
    boolean open;
    private boolean staged;
    /** Whose descriptor is complete when this is sent, or null. */
    PeerQueue queue;
    int index;

    void clear() {
        open = false;
        staged = false;
        queue = null;
    }

    /** Begins to make bytes readable for the peer: in the staging ring, or as the payload if there is none. False if there is no room now. */
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

    boolean hasPayload() {
        return open && !staged && header.payloadBytes() > 0;
    }

    boolean isReadable() {
        return !open || transfer.memory().readable(transfer);
    }

    /** The frame was offered: a source that was copied is free. */
    void offered() {
        if (open && (staged || transfer.memory().isCopied())) {
            complete();
        }
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
