package org.millrace.net.socket;

import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameHeader;

/**
 * The frames of a receiver. In the order of the frames' numbers, the receiver returns their headers, accepts them and
 * completes them.
 */
final class ReceiveWindow extends PieceWindow {

    private final boolean[] known;
    private long acceptedPieces;

    ReceiveWindow(Pieces pieces) {
        super(pieces);
        known = new boolean[headers.length];
    }

    /** Describes the error in a piece's header; null if the header is valid. Called before any use of the header. */
    @Nullable
    String problem(ByteBuffer from, int at) {
        if (!PieceFormat.isPiece(from, at)) {
            return HeaderFormat.problem(from, at);
        }
        int payload = (int) HeaderFormat.payloadBytes(from, at);
        long frame = PieceFormat.frame(from, at);
        int offset = PieceFormat.offset(from, at);
        int length = PieceFormat.length(from, at);
        if (frame < 0 || frame - completed >= pieces.window()) {
            return "a piece is of frame " + frame + ", but those under way are " + completed + " to "
                    + (completed + pieces.window() - 1);
        }
        if (pieces.isWhole() && frame > completed && !isKnown(frame - 1)) {
            return "frame " + frame + " came before frame " + (frame - 1);
        }
        if (offset < 0 || offset > payload || offset % pieces.bytes() != 0 || offset == payload && payload > 0
                || length != pieces.length(payload, offset / pieces.bytes())) {
            return "a piece of " + length + " bytes at " + offset + " of a payload of " + payload + "; pieces have "
                    + pieces.bytes() + " bytes";
        }
        if (isKnown(frame) && frame >= completed && headers[slot(frame)].payloadBytes() != payload) {
            return "a piece states that its payload has " + payload + " bytes, an earlier one of frame " + frame
                    + " stated " + headers[slot(frame)].payloadBytes();
        }
        return null;
    }

    /** Copies the header of a frame from one of its pieces, unless the header is already known. */
    void introduce(long frame, ByteBuffer from, int at) {
        if (!isKnown(frame)) {
            int slot = slot(frame);
            HeaderFormat.decode(from, at, headers[slot]);
            known[slot] = true;
            beginPieces(slot);
        }
    }

    private boolean isKnown(long frame) {
        return frame < completed || known[slot(frame)];
    }

    void arrived(long frame, int piece) {
        markArrived(slot(frame), piece);
    }

    /** Records that a piece has been stored at its destination. */
    void placed(long frame) {
        missing[slot(frame)]--;
    }

    /** Sets the destination of the oldest frame that has no destination. */
    void accept(@Nullable ByteBuffer view, int start) {
        int slot = slot(accepted);
        views[slot] = view;
        starts[slot] = start;
        acceptedPieces += missing[slot];
        accepted++;
    }

    void retireWhole() {
        while (completed < accepted && missing[slot(completed)] == 0) {
            int slot = slot(completed);
            known[slot] = false;
            views[slot] = null;
            completed++;
        }
    }

    /**
     * Returns whether the connection waits only for a destination: all frames with a destination are complete, and the
     * header of the next frame has arrived.
     */
    boolean waitsForDestination() {
        return accepted == completed && isKnown(accepted);
    }

    boolean hasNext() {
        return accepted - completed < pieces.window() && known[slot(accepted)];
    }

    FrameHeader next() {
        return headers[slot(accepted)];
    }

    long acceptedPieces() {
        return acceptedPieces;
    }

    /** Returns whether at least one frame with a destination is incomplete. */
    boolean isReceiving() {
        return accepted > completed;
    }
}
