package org.millrace.net.socket.rails;

import java.nio.ByteBuffer;
import org.millrace.net.FrameHeader;

/**
 * The frames of a sender that the receiver is not done with: a ring, oldest first, and how far their pieces were given
 * to rails. A frame is complete when all its pieces are acknowledged; its slot is free when it also has a destination.
 * One thread.
 */
final class SendWindow {

    private final Pieces pieces;
    private final int limit;
    private final int mask;
    private final ByteBuffer[] views;
    private final int[] starts;
    private final FrameHeader[] headers;
    private final int[] given;
    private final int[] missing;
    private final PieceBits arrived;
    private long added;
    private long completed;
    /** The oldest frame that has pieces which were never given to a rail. */
    private long fresh;
    /** Frames of which the receiver said that they have a destination. */
    private long accepted;
    /** Pieces given of frames that are not accepted. */
    private int unaccepted;

    SendWindow(Pieces pieces, int limit) {
        this.pieces = pieces;
        this.limit = limit;
        int capacity = Integer.highestOneBit(limit * 2 - 1);
        mask = capacity - 1;
        views = new ByteBuffer[capacity];
        starts = new int[capacity];
        headers = new FrameHeader[capacity];
        for (int slot = 0; slot < capacity; slot++) {
            headers[slot] = new FrameHeader();
        }
        given = new int[capacity];
        missing = new int[capacity];
        arrived = new PieceBits(capacity);
    }

    void add(FrameHeader header, ByteBuffer view, int start) {
        int slot = slot(added);
        headers[slot].set(header);
        views[slot] = view;
        starts[slot] = start;
        given[slot] = 0;
        missing[slot] = pieces.count(length(slot));
        arrived.clear(slot, missing[slot]);
        added++;
    }

    /** Whether there is a piece that was never given to a rail, and may be sent now. */
    boolean hasFresh() {
        return fresh < added && (fresh < accepted || unaccepted < pieces.unaccepted());
    }

    long freshFrame() {
        return fresh;
    }

    int freshPiece() {
        return given[slot(fresh)];
    }

    /** Notes that the fresh piece was given to a rail. */
    void give() {
        int slot = slot(fresh);
        if (fresh >= accepted) {
            unaccepted++;
        }
        if (++given[slot] == pieces.count(length(slot))) {
            fresh++;
        }
    }

    /** Notes that the receiver has destinations for so many frames; fewer than it said before is old news. */
    void accepted(long frames) {
        for (; accepted < frames; accepted++) {
            unaccepted -= given[slot(accepted)];
        }
    }

    /** Whether a piece needs no more sending. */
    boolean isArrived(long frame, int piece) {
        return frame < completed || arrived.has(slot(frame), piece);
    }

    /** Notes that a piece arrived, perhaps not for the first time. */
    void arrived(long frame, int piece) {
        if (!isArrived(frame, piece)) {
            int slot = slot(frame);
            arrived.set(slot, piece);
            missing[slot]--;
        }
    }

    void retireWhole() {
        while (completed < added && missing[slot(completed)] == 0) {
            views[slot(completed)] = null;
            completed++;
        }
    }

    /** Whether the receiver's window holds no further frame: it keeps a frame until it has a destination too. */
    boolean isFull() {
        return added - Math.min(completed, accepted) == limit;
    }

    long added() {
        return added;
    }

    long completed() {
        return completed;
    }

    /** Frames of which the receiver said that they have a destination. */
    long accepted() {
        return accepted;
    }

    boolean isEmpty() {
        return added == completed;
    }

    boolean isGiven() {
        return fresh == added;
    }

    int slot(long frame) {
        return (int) frame & mask;
    }

    FrameHeader header(int slot) {
        return headers[slot];
    }

    int length(int slot) {
        return (int) headers[slot].payloadBytes();
    }

    ByteBuffer view(int slot) {
        return views[slot];
    }

    int start(int slot) {
        return starts[slot];
    }
}
