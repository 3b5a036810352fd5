package org.millrace.gin;

import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameSender;

/**
 * The frames to one peer that are under way, oldest first. They are offered to the network in that order, however long
 * each takes to be staged. A frame with nothing to bring, or with a signal that this rank can count up at the peer, is
 * not sent when its turn comes.
 */
final class OutboundFrames {

    private final FrameSender sender;
    private final OutboundFrame[] ring;
    private long added;
    /** The last that has bytes which may wait to be copied until somebody asks, and the last that was asked for. */
    private long newest;
    private long asked;
    private long offered;
    /** How many of those that were offered went to the network. */
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
     * Whether a peer that left misses one of them: all but the first, which is the greeting that it may have left
     * before.
     */
    boolean owesPeer() {
        return added > Math.max(sent, 1);
    }

    /** The frame that {@link #add} will add, cleared. */
    OutboundFrame next() {
        OutboundFrame next = at(added);
        next.clear();
        return next;
    }

    /** Adds it; returns the number of its entry, from 1 on. */
    long add() {
        added++;
        if (at(added - 1).transfer.isOpen()) {
            newest = added;
        }
        return added;
    }

    /** Whether an entry was offered to the network, or done without. */
    boolean isOffered(long entry) {
        return offered >= entry;
    }

    /** How many went to the network. */
    long count() {
        return frames;
    }

    /** Offers what is staged, moves what the network takes, and completes what it has sent. */
    int progress() {
        int work = 0;
        try {
            if (asked != newest) { // copies are begun many at once, and now is the time
                asked = newest;
                at(newest - 1).isReadable();
            }
            while (offered < added && at(offered).isReadable() && pass(at(offered))) {
                at(offered++).offered(frames);
                work++;
            }
            work += sender.progress();
        } finally {
            work += complete(); // a shutdown message may be thrown in the very pass that sent the last frames
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

    /** The peer has left: completes what it says that it has received; false if it says nothing more. */
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

    /** The connection is closed. A failure may have left a frame that was begun and not added, so all are looked at. */
    void abandon() {
        for (OutboundFrame frame : ring) {
            frame.abandon();
        }
    }

    /** Has the frame sent, or does without it; false if the network has no room now. */
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

    /** A frame that is on its way out: its payload is being staged, or it is being sent. Reused. */
    static final class OutboundFrame {

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
}
