package org.millrace.gin;

import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameSender;

/**
 * The entries in flight to one peer, oldest first. An entry is a frame, or a copy that takes the position of a frame.
 * Entries are offered to the network in this order, even if a later entry becomes readable first. An entry without data
 * for the peer is completed without a frame. An entry with only a signal also needs no frame if this rank can increase
 * the signal directly in the peer's memory.
 */
final class OutboundFrames {

    private final FrameSender sender;
    private final OutboundFrame[] ring;
    private long added;
    /**
     * Number of the newest entry with an open transfer; 0 if none. A window's memory may delay an entry's copies until
     * the entry or a newer entry is checked. {@link #progress} therefore checks the newest entry. {@link #asked} is the
     * value of this field at the latest such check.
     */
    private long newest;
    private long asked;
    private long offered;
    /** Number of entries that were offered to the network as frames. */
    private long frames;
    private long sent;
    /** Queue with descriptors that are complete, but not published; null if there is none. */
    private @Nullable PeerQueue unpublished;

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
     * Called after the peer has closed the connection. Returns whether some frames are not yet sent. The hello, which
     * is the first frame, is not counted, because the peer may close the connection before it receives the hello.
     */
    boolean owesPeer() {
        return added > Math.max(sent, 1);
    }

    /** Clears and returns the object for the entry that the next call of {@link #add} adds. */
    OutboundFrame next() {
        OutboundFrame next = at(added);
        next.clear();
        return next;
    }

    /** Adds the entry that {@link #next} returned. Returns the number of the entry, from 1 on. */
    long add() {
        added++;
        if (at(added - 1).transfer.isOpen()) {
            newest = added;
        }
        return added;
    }

    /** Returns whether an entry was offered to the network, or was passed over because the entry needs no frame. */
    boolean isOffered(long entry) {
        return offered >= entry;
    }

    /** Returns the number of frames that were offered to the network. */
    long count() {
        return frames;
    }

    /**
     * Offers entries, oldest first, until an entry is not readable or the network accepts no more frames. Then lets the
     * sender make progress, and completes the entries that the network has sent. Returns the amount of work done.
     */
    int progress() {
        int work = 0;
        try {
            // New entries were added. The check of the newest entry makes the window's memory begin the batched copies
            // of these entries.
            if (asked != newest) {
                asked = newest;
                at(newest - 1).isReadable();
            }
            while (offered < added && at(offered).isReadable() && pass(at(offered))) {
                OutboundFrame frame = at(offered++);
                if (frame.offered(frames)) {
                    complete(frame);
                }
                work++;
            }
            // Published before the sender writes, so that flushes and full queues need not wait for the writes.
            publish();
            work += sender.progress();
        } finally {
            // Also runs if sender.progress() throws, because the sender may have sent frames before the exception.
            work += complete();
        }
        return work;
    }

    private int complete() {
        long first = sent;
        if (first < offered) {
            long completed = sender.framesCompleted();
            while (sent < offered && at(sent).isSent(completed)) {
                complete(at(sent++).sent());
            }
        }
        publish();
        return (int) (sent - first);
    }

    private void complete(OutboundFrame frame) {
        PeerQueue queue = frame.takeCompleted();
        if (queue != null) {
            if (queue != unpublished) {
                publish();
                unpublished = queue;
            }
            queue.count(frame.index);
        }
    }

    /** Publishes the completed descriptors of a queue together, by one store to the word that a kernel polls. */
    private void publish() {
        if (unpublished != null) {
            unpublished.publish();
            unpublished = null;
        }
    }

    /**
     * Lets the sender of a closed peer make progress, and completes the frames that the peer acknowledges. Returns
     * false if the connection is closed or lost: no more acknowledgements can then arrive.
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
     * Abandons all entries, because the connection is closed. Also abandons objects that were not added, because a
     * failure may have occurred between the start of a transfer and {@link #add}.
     */
    void abandon() {
        for (OutboundFrame frame : ring) {
            frame.abandon();
        }
    }

    /**
     * Offers the entry's frame to the network, unless the entry needs no frame. Returns false if the network accepts no
     * frame now.
     */
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

    /**
     * An entry: its bytes are being made readable, or its frame is being sent. A copy of {@link DirectPath} is an
     * entry, too. The object is reused.
     */
    static final class OutboundFrame {

        final FrameHeader header = new FrameHeader();
        final WindowTransfer transfer = new WindowTransfer();
        /** Whether the bytes are copied into a staging ring. The frame then has no payload. */
        private boolean staged;
        private boolean signals;
        /**
         * Number of frames that were offered to the network up to this entry, including the entry's own frame, if any.
         */
        private long number;
        /**
         * Order between the paths of the entry's queue; null if the entry's frame must transfer bytes. If this field is
         * not null, a frame would transfer at most a signal.
         */
        private @Nullable PathOrder order;
        /**
         * Queue of the descriptor that waits for this entry. The descriptor is complete when the entry no longer needs
         * the source. Null if no descriptor waits.
         */
        private @Nullable PeerQueue queue;
        private int index;

        void clear() {
            staged = false;
            signals = false;
            order = null;
            queue = null;
        }

        /**
         * Records the location of the bytes in the staging ring. The copy into the ring may still be in progress.
         */
        void staged(long offset, long bytes) {
            staged = true;
            GinHeader.staged(header, offset, bytes);
        }

        /**
         * Records that a frame of this entry has nothing to transfer, except possibly a signal. Either the entry has no
         * bytes, or a copy transfers its bytes.
         *
         * @param paths order between the paths of the entry's queue
         */
        void bringsSignalAtMost(PathOrder paths) {
            order = paths;
        }

        /** Adds the descriptor's signal to the header. Does nothing if the descriptor has no signal. */
        void signals(GinDescriptor descriptor) {
            if (descriptor.signals()) {
                signals = true;
                GinHeader.signal(header, descriptor.signal, descriptor.signalValue);
            }
        }

        /** Records the descriptor that completes when the entry no longer needs its source. */
        void completes(PeerQueue of, int descriptor) {
            queue = of;
            index = descriptor;
        }

        /**
         * Returns whether the entry needs no frame. If a signal is the entry's only content, tries to increase the
         * signal directly in the peer's memory.
         *
         * @param frames number of frames that were offered before this entry
         */
        boolean isNeedless(long frames) {
            return order != null && (!signals || order.signal(header, frames));
        }

        boolean hasPayload() {
            return transfer.isOpen() && !staged && header.payloadBytes() > 0;
        }

        boolean isReadable() {
            return !transfer.isOpen() || transfer.memory().readable(transfer);
        }

        /**
         * Records that the entry was offered, or needs no frame. Returns whether the entry's descriptor is already
         * complete, because the bytes were copied and the source may be overwritten.
         *
         * @param frames number of frames that were offered up to this entry
         */
        boolean offered(long frames) {
            number = frames;
            return transfer.isOpen() && (staged || transfer.memory().isCopied());
        }

        /**
         * Returns whether the network has sent the frames of this entry and of all earlier entries.
         *
         * @param frames number of frames that the network has sent
         */
        boolean isSent(long frames) {
            return frames - number >= 0;
        }

        /** Ends the entry after its frame was sent: releases the transfer. The descriptor is then complete. */
        OutboundFrame sent() {
            if (transfer.isOpen()) {
                transfer.release();
            }
            return this;
        }

        /** Abandons the entry's transfer, because the closed connection reports no more sent frames. */
        void abandon() {
            if (transfer.isOpen()) {
                transfer.abandon();
            }
        }

        /**
         * Returns the queue of the descriptor that this entry completes, and forgets the queue. Returns null if the
         * entry completes no descriptor.
         */
        private @Nullable PeerQueue takeCompleted() {
            PeerQueue of = queue;
            queue = null;
            return of;
        }
    }
}
