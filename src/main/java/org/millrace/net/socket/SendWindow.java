package org.millrace.net.socket;

import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameHeader;

/**
 * The frames of a sender that the receiver is not done with, and how far their pieces were given to rails. A frame is
 * complete when all its pieces are acknowledged; its slot is free when it also has a destination.
 */
final class SendWindow extends PieceWindow {

    private final int[] given;
    private long added;
    /** The oldest frame that has pieces which were never given to a rail. */
    private long fresh;
    /** Pieces given of frames that are not accepted. */
    private int unaccepted;

    SendWindow(Pieces pieces, int limit) {
        super(pieces, limit);
        given = new int[headers.length];
    }

    void add(FrameHeader header, @Nullable ByteBuffer view, int start) {
        int slot = slot(added);
        headers[slot].set(header);
        views[slot] = view;
        starts[slot] = start;
        given[slot] = 0;
        beginPieces(slot);
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
        if (++given[slot] == pieces.count(length(fresh))) {
            fresh++;
        }
    }

    /** Notes that the receiver has destinations for so many frames; fewer than it said before is old news. */
    void accepted(long frames) {
        for (; accepted < frames; accepted++) {
            unaccepted -= given[slot(accepted)];
        }
    }

    /** Notes that a piece arrived, perhaps not for the first time. */
    void arrived(long frame, int piece) {
        if (!isArrived(frame, piece)) {
            int slot = slot(frame);
            markArrived(slot, piece);
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

    boolean isEmpty() {
        return added == completed;
    }

    boolean isGiven() {
        return fresh == added;
    }

    FrameHeader header(long frame) {
        return headers[slot(frame)];
    }

    int length(long frame) {
        return (int) headers[slot(frame)].payloadBytes();
    }
}
