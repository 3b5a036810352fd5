package org.millrace.gin;

import org.millrace.net.ConnectionException;
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
}
