package org.millrace.gin;

import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameSender;

/**
 * The frames in flight to one peer, oldest first. They are offered to the network in this order, regardless of the time
 * that each takes to be staged. An entry without data for the peer is not sent. Neither is an entry with only a signal
 * that this rank can increase directly at the peer.
 */
final class OutboundFrames {

    private final FrameSender sender;
    private final OutboundFrame[] ring;
    private long added;
    /**
     * Number of the last entry with an open transfer, and number of the last such entry that was checked. A memory may
     * delay copies until that check.
     */
    private long newest;
    private long asked;
    private long offered;
    /** Number of offered entries that were sent to the network as frames. */
    private long frames;
    private long sent;

    OutboundFrames(FrameSender sender, int depth) {
        this.sender = sender;
        ring = new OutboundFrame[depth];
        for (int i = 0; i < depth; i++) {
            ring[i] = new OutboundFrame();
        }
    }

    private OutboundFrame at(long number) {
        return ring[(int) number & ring.length - 1];
    }

    boolean isFull() {
        return added - sent == ring.length;
    }

    boolean isEmpty() {
        return added == sent;
    }

    /**
     * Returns whether a peer that has closed still needs one of the frames. The first frame is the hello and does not
     * count, because the peer may have closed before it.
     */
    boolean owesPeer() {
        return added > Math.max(sent, 1);
    }

    /** Returns the frame that {@link #add} will add, cleared. */
    OutboundFrame next() {
        OutboundFrame next = at(added);
        next.clear();
        return next;
    }

    /** Adds the frame. Returns the number of its entry, from 1 on. */
    long add() {
        added++;
        if (at(added - 1).transfer.isOpen()) {
            newest = added;
        }
        return added;
    }

    /** Returns whether an entry was offered to the network, or passed without a frame. */
    boolean isOffered(long entry) {
        return offered >= entry;
    }

    /** Returns the number of frames that were sent to the network. */
    long count() {
        return frames;
    }

    /** Offers staged entries, moves the data that the network accepts, and completes the frames that it has sent. */
    int progress() {
        int work = 0;
        try {
            if (asked != newest) { // copies are begun in batches, and the batch ends here
                asked = newest;
                at(newest - 1).isReadable();
            }
            while (offered < added && at(offered).isReadable() && pass(at(offered))) {
                at(offered++).offered(frames);
                work++;
            }
            work += sender.progress();
        } finally {
            work += complete(); // a shutdown message may be thrown in the same pass that sent the last frames
        }
        return work;
    }

    private int complete() {
        int work = 0;
        while (sent < offered && at(sent).isSent(sender.framesCompleted())) {
            at(sent++).sent();
            work++;
        }
        return work;
    }

    /**
     * Completes the frames that the peer reports as received, after the peer has closed. Returns false if the peer
     * reports nothing more.
     */
    boolean listen() {
        try {
            sender.progress();
            return true;
        } catch (ConnectionException over) {
            return false;
        } finally {
            complete();
        }
    }

    /**
     * Abandons all frames, because the connection is closed. A failure may have left a frame that was begun and not
     * added, so all frames are checked.
     */
    void abandon() {
        for (OutboundFrame frame : ring) {
            frame.abandon();
        }
    }

    /** Offers the frame, or passes it without sending. Returns false if the network has no room now. */
    private boolean pass(OutboundFrame frame) {
        if (frame.isNeedless(frames)) {
            return true;
        }
        boolean payload = frame.hasPayload();
        if (!sender.offer(frame.header, payload ? frame.transfer.region() : null,
                payload ? frame.transfer.regionOffset() : 0)) {
            return false;
        }
        frames++;
        return true;
    }

    /** An outbound frame: its payload is being staged, or the frame is being sent. The object is reused. */
    static final class OutboundFrame {

        final FrameHeader header = new FrameHeader();
        final WindowTransfer transfer = new WindowTransfer();
        /** Whether the bytes are copied through a staging ring, so that the frame has no payload. */
        private boolean staged;
        /** Number of frames that were offered to the network, including this one. */
        private long number;
        /** Order of the frame's queue if the frame transfers at most a signal; otherwise null. */
        private @Nullable PathOrder order;
        /** Queue of the descriptor that is complete when the frame was sent, or null. */
        private @Nullable PeerQueue queue;
        private int index;

        void clear() {
            staged = false;
            order = null;
            queue = null;
        }

        /** Records that the bytes lie in the staging ring, or will lie there when the copy is complete. */
        void staged(long offset, long bytes) {
            staged = true;
            GinHeader.staged(header, offset, bytes);
        }

        /** Records that the frame transfers at most a signal, because its bytes reach their destination without it. */
        void bringsSignalAtMost(PathOrder of) {
            order = of;
        }

        /** Adds the descriptor's signal to the frame, if the descriptor has one. */
        void signals(GinDescriptor descriptor) {
            if (descriptor.signals()) {
                GinHeader.signal(header, descriptor.signal, descriptor.signalValue);
            }
        }

        /** Records the descriptor that is complete when the frame was sent. */
        void completes(PeerQueue of, int descriptor) {
            queue = of;
            index = descriptor;
        }

        /**
         * Performs the frame's action at the peer without a frame, if that is possible after {@code frames} sent
         * frames. Returns whether the frame is needless.
         */
        boolean isNeedless(long frames) {
            return order != null && (!GinHeader.isSignalled(header) || order.signal(header, frames));
        }

        boolean hasPayload() {
            return transfer.isOpen() && !staged && header.payloadBytes() > 0;
        }

        boolean isReadable() {
            return !transfer.isOpen() || transfer.memory().readable(transfer);
        }

        /**
         * Records that the frame was offered, or is needless after {@code frames} frames. A source that was copied is
         * free then.
         */
        void offered(long frames) {
            number = frames;
            if (transfer.isOpen() && (staged || transfer.memory().isCopied())) {
                complete();
            }
        }

        /** Returns whether the network has sent this frame and all earlier ones. */
        boolean isSent(long frames) {
            return frames - number >= 0;
        }

        /** Records that the frame was sent, so that its source was read. */
        void sent() {
            if (transfer.isOpen()) {
                transfer.release();
            }
            complete();
        }

        /** Abandons the frame, because the connection is closed and will not report that the frame was sent. */
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
}
