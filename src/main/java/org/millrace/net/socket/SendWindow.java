package org.millrace.net.socket;

import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameHeader;

/**
 * A sender's frames that are possibly incomplete at the receiver, and the next piece that is not assigned to a stream.
 * A frame is complete when all its pieces are acknowledged. A frame's slot becomes free when the frame is complete and
 * has a destination at the receiver.
 *
 * <p>
 * The owner may change the memory of a copied frame as soon as the operating system has the copy, even if the frame is
 * incomplete. If the frame must be sent again, the copy is sent.
 */
final class SendWindow extends PieceWindow {

    /**
     * Number of {@link #held} frames after which one acknowledgement is requested for all of them. A held frame with at
     * least {@link #ASK_BYTES} has its own request.
     */
    private static final int ASK_FRAMES = 2;
    private static final int ASK_BYTES = 256 << 10;

    private final int[] given;
    /**
     * For each slot, whether a copy of its frame is kept. If so, the slot's buffer refers to the copy, not to the
     * owner's memory.
     */
    private final boolean[] copied;
    /** For each slot, whether the operating system has the copy of its frame. */
    private final boolean[] copySent;
    /**
     * For each slot, whether its frame is held. A frame is held if some of its bytes are sent directly from the owner's
     * memory. The owner must not change this memory until the frame is complete.
     */
    private final boolean[] held;
    private int heldCount;
    /** Number of held frames without a request for an acknowledgement. */
    private int unasked;
    /**
     * Whether the owner needs an acknowledgement soon. If any held frame lacks a request, the sender requests the
     * acknowledgement immediately. Otherwise the next held frame contains the request.
     */
    private boolean hasty;
    private long added;
    /** Number of released frames. The owner may change the memory of a released frame again. */
    private long released;
    /** The oldest frame that has pieces which were never assigned to a stream. */
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

    /** Returns whether there is a piece that was never assigned to a stream and may be sent now. */
    boolean hasFresh() {
        return fresh < added && (fresh < accepted || unaccepted < pieces.unaccepted());
    }

    long freshFrame() {
        return fresh;
    }

    int freshPiece() {
        return given[slot(fresh)];
    }

    /** Records that the next unassigned piece was assigned to a stream. */
    void give() {
        int slot = slot(fresh);
        if (fresh >= accepted) {
            unaccepted++;
        }
        if (++given[slot] == pieces.count(length(fresh))) {
            fresh++;
        }
    }

    /**
     * Records the receiver's report of the number of frames that have a destination. A number less than an earlier
     * number has no effect.
     */
    void accepted(long frames) {
        for (; accepted < frames; accepted++) {
            unaccepted -= given[slot(accepted)];
        }
    }

    /** Records that a whole frame was copied to a staging buffer. Callable again when the frame is sent again. */
    void copied(long frame, ByteBuffer to, int at) {
        int slot = slot(frame);
        if (!held[slot]) {
            views[slot] = to;
            starts[slot] = at;
            copied[slot] = true;
        }
    }

    /** Records that the operating system has the copy of a frame. */
    void copySent(long frame) {
        if (frame >= completed) {
            copySent[slot(frame)] = copied[slot(frame)];
        }
    }

    /** Records that a part of a frame is sent directly from the owner's memory. */
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
     * Returns whether a piece must request an acknowledgement. Only pieces of held frames request one. A request costs
     * as much time as about ten KiB of data, so several short frames share one request. A late request does not stop a
     * device: while one frame is held, the device uses its other slots for the next frames.
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

    /** Returns whether any held frame lacks a request for an acknowledgement. */
    boolean isAnyUnasked() {
        return unasked > 0;
    }

    /**
     * Lets the sender request an acknowledgement soon: immediately if any held frame lacks a request, otherwise with
     * the next held frame.
     */
    void hasten() {
        hasty = true;
    }

    boolean isHasty() {
        return hasty;
    }

    /** Returns whether at least one frame is held. The owner must not change the memory of a held frame. */
    boolean isAnyHeld() {
        return heldCount > 0;
    }

    /** Records that a piece has arrived at the receiver. A repeated call for the same piece has no effect. */
    void arrived(long frame, int piece) {
        if (!isArrived(frame, piece)) {
            int slot = slot(frame);
            markArrived(slot, piece);
            missing[slot]--;
        }
    }

    /**
     * Records the receiver's report of the number of frames that have arrived completely. The acknowledgements of their
     * pieces are no longer needed. Returns false if the sender has not sent that many frames.
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
     * Returns whether a new frame must wait. The receiver has a limited number of slots, and a frame occupies a slot
     * until the frame has a destination and has arrived. The number of frames that are not released is also limited.
     */
    boolean isFull() {
        return added - Math.min(completed, accepted) == pieces.window() || added - released == pieces.inFlight();
    }

    /** Returns the number of released frames. The owner may change the memory of a released frame again. */
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
