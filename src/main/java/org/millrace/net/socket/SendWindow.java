package org.millrace.net.socket;

import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameHeader;

/**
 * The frames of a sender that may be incomplete at the receiver, and the assignment of their pieces to streams. A frame
 * is complete when all its pieces are acknowledged. Its slot is free when it also has a destination. The memory of a
 * copied frame belongs to its owner earlier, as soon as the kernel has the copy: a resend uses the copy.
 */
final class SendWindow extends PieceWindow {

    /** Number of held frames for one request of an acknowledgement. A frame of many bytes requests its own. */
    private static final int ASK_FRAMES = 2;
    private static final int ASK_BYTES = 256 << 10;

    private final int[] given;
    /** By slot: whether a copy is kept. The view refers to the copy. */
    private final boolean[] copied;
    /** By slot: whether the kernel has that copy. */
    private final boolean[] copySent;
    /** By slot: whether a part is sent from its owner's memory, which is held until the frame is complete. */
    private final boolean[] held;
    private int heldCount;
    /** Number of held frames without a request for an acknowledgement. */
    private int unasked;
    /** Whether an acknowledgement is requested at once: for the held frames, or with the next held frame. */
    private boolean hasty;
    private long added;
    /** Number of frames with memory that belongs to their owner again. */
    private long released;
    /** The oldest frame with pieces that were never assigned to a rail. */
    private long fresh;
    /** Number of assigned pieces of frames without a destination. */
    private int unaccepted;

    SendWindow(Pieces pieces) {
        super(pieces);
        given = new int[headers.length];
        copied = new boolean[headers.length];
        copySent = new boolean[headers.length];
        held = new boolean[headers.length];
    }

    void add(FrameHeader header, @Nullable ByteBuffer view, int start) {
        int slot = slot(added);
        headers[slot].set(header);
        views[slot] = view;
        starts[slot] = start;
        given[slot] = 0;
        copied[slot] = false;
        copySent[slot] = false;
        held[slot] = false;
        beginPieces(slot);
        added++;
    }

    /** Returns whether a piece was never assigned to a rail, and may be sent now. */
    boolean hasFresh() {
        return fresh < added && (fresh < accepted || unaccepted < pieces.unaccepted());
    }

    long freshFrame() {
        return fresh;
    }

    int freshPiece() {
        return given[slot(fresh)];
    }

    /** Records that the fresh piece was assigned to a rail. */
    void give() {
        int slot = slot(fresh);
        if (fresh >= accepted) {
            unaccepted++;
        }
        if (++given[slot] == pieces.count(length(fresh))) {
            fresh++;
        }
    }

    /** Records the receiver's number of frames with destinations. A smaller number than before is outdated. */
    void accepted(long frames) {
        for (; accepted < frames; accepted++) {
            unaccepted -= given[slot(accepted)];
        }
    }

    /** Records that a whole frame was copied, possibly again. */
    void copied(long frame, ByteBuffer to, int at) {
        int slot = slot(frame);
        if (!held[slot]) {
            views[slot] = to;
            starts[slot] = at;
            copied[slot] = true;
        }
    }

    /** Records that the kernel has a frame's copy. */
    void copySent(long frame) {
        if (frame >= completed) {
            copySent[slot(frame)] = copied[slot(frame)];
        }
    }

    /** Records that a part of a frame is sent from the owner's memory. */
    void sentInPlace(long frame) {
        int slot = slot(frame);
        if (!copied[slot] && !held[slot]) {
            held[slot] = true;
            heldCount++;
        }
    }

    boolean isHeld(long frame) {
        return held[slot(frame)];
    }

    /**
     * Returns whether a piece of a frame requests an acknowledgement, which costs as much as about ten KiB of data. A
     * device has slots for the next frame while one frame's slots are held.
     */
    boolean asks(long frame) {
        if (!isHeld(frame)) {
            return false;
        }
        if (!pieces.isWhole() || hasty || ++unasked == ASK_FRAMES || length(frame) >= ASK_BYTES) {
            asked();
            return true;
        }
        return false;
    }

    /** Records that an acknowledgement of all data was requested. */
    void asked() {
        unasked = 0;
        hasty = false;
    }

    /** Returns whether frames are held without a request for an acknowledgement. */
    boolean isAnyUnasked() {
        return unasked > 0;
    }

    /** Makes the sender request an acknowledgement at once: for the held frames, or with the next held frame. */
    void hasten() {
        hasty = true;
    }

    boolean isHasty() {
        return hasty;
    }

    /** Returns whether frames hold memory until their acknowledgement. */
    boolean isAnyHeld() {
        return heldCount > 0;
    }

    /** Records that a piece arrived, possibly again. */
    void arrived(long frame, int piece) {
        if (!isArrived(frame, piece)) {
            int slot = slot(frame);
            markArrived(slot, piece);
            missing[slot]--;
        }
    }

    /**
     * Records the number of frames that arrived completely, independent of their pieces' acknowledgements. Returns
     * false if they were never sent.
     */
    boolean whole(long frames) {
        if (frames < 0 || frames > fresh) {
            return false;
        }
        for (long frame = completed; frame < frames; frame++) {
            markAllArrived(slot(frame));
        }
        return true;
    }

    void retireWhole() {
        while (completed < added && missing[slot(completed)] == 0) {
            int slot = slot(completed);
            views[slot] = null;
            heldCount -= held[slot] ? 1 : 0;
            completed++;
        }
        if (heldCount == 0) {
            unasked = 0;
        }
        released = Math.max(released, completed);
        while (released < added && copySent[slot(released)]) {
            released++;
        }
    }

    /**
     * Returns whether no slot is free for another frame. The receiver's window keeps a frame until it has a
     * destination, and the number of frames that hold memory is limited.
     */
    boolean isFull() {
        return added - Math.min(completed, accepted) == pieces.window() || added - released == pieces.inFlight();
    }

    /** Returns the number of frames with memory that belongs to their owner again. */
    long released() {
        return released;
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
