package org.millrace.gin;

import org.millrace.net.FrameSender;

/** The frames to one peer that are under way, oldest first. They are offered to the network in that order, however long each takes to be staged. */
final class OutgoingFrames {

    private final FrameSender sender;
    private final Outgoing[] ring;
    private long added;
    private long offered;
    private long sent;

    OutgoingFrames(FrameSender sender, int depth) {
        this.sender = sender;
        ring = new Outgoing[depth];
        for (int i = 0; i < depth; i++) {
            ring[i] = new Outgoing();
        }
    }

    private Outgoing at(long number) {
        return ring[(int) number & ring.length - 1];
    }

    boolean isFull() {
        return added - sent == ring.length;
    }

    boolean isEmpty() {
        return added == sent;
    }

    /** Whether a peer that left misses one of them: all but the first, which is the greeting that it may have left before. */
    boolean owesPeer() {
        return added > Math.max(sent, 1);
    }

    /** The frame that {@link #add} will add, cleared. */
    Outgoing next() {
        Outgoing next = at(added);
        next.clear();
        return next;
    }

    void add() {
        added++;
    }

    /** Offers what is staged, moves what the network takes, and completes what it has sent. */
    int progress() {
        int work = 0;
        while (offered < added && at(offered).isReadable() && offer(at(offered))) {
            at(offered++).offered();
            work++;
        }
        work += sender.progress();
        while (sent < offered && sender.framesCompleted() - sent > 0) {
            at(sent++).sent();
            work++;
        }
        return work;
    }

    /** The connection is closed. Whoever failed may have begun a frame and not added it, so all are looked at. */
    void abandon() {
        for (Outgoing frame : ring) {
            frame.abandon();
        }
    }

    private boolean offer(Outgoing frame) {
        Transfer payload = frame.hasPayload() ? frame.transfer : null;
        return sender.offer(frame.header, payload == null ? null : payload.region(), payload == null ? 0 : payload.regionOffset());
    }
}
