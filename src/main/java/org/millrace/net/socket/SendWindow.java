package org.millrace.net.socket;

import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameHeader;

/**
 * The frames of a sender that the receiver is not known to have whole, and how far their pieces were given to streams.
 * A frame is complete when all its pieces are acknowledged; its slot is free when it also has a destination. The memory
 * of one that was copied is its owner's again before, as soon as the kernel has the copy: it is sent again from the
 * copy.
 */
final class SendWindow extends PieceWindow {

    /** Of so many held frames one asks for an acknowledgement, and each of so many bytes. */
    private static final int ASK_FRAMES = 2;
    private static final int ASK_BYTES = 256 << 10;

    private final int[] given;
    /** By slot: a copy is kept, which the view leads to. */
    private final boolean[] copied;
    /** By slot: the kernel has that copy. */
    private final boolean[] copySent;
    /** By slot: some of it is sent from its owner's memory, which is held until the frame is complete. */
    private final boolean[] held;
    private int heldCount;
    /** Frames held of which nobody has asked for an acknowledgement. */
    private int unasked;
    /** The next is asked for at once. */
    private boolean hasty;
    private long added;
    /** Frames whose memory is their owner's again. */
    private long released;
    /** The oldest frame that has pieces which were never given to a rail. */
    private long fresh;
    /** Pieces given of frames that are not accepted. */
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

    /** Notes that a whole frame was copied, perhaps not for the first time. */
    void copied(long frame, ByteBuffer to, int at) {
        int slot = slot(frame);
        if (!held[slot]) {
            views[slot] = to;
            starts[slot] = at;
            copied[slot] = true;
        }
    }

    /** Notes that the kernel has what was copied of a frame. */
    void copySent(long frame) {
        if (frame >= completed) {
            copySent[slot(frame)] = copied[slot(frame)];
        }
    }

    /** Notes that some of a frame is sent from where it lies. */
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
     * Whether a piece of a frame asks for an acknowledgement, which costs as much as some ten KiB: a device has slots
     * for the next frame while one frame's are held.
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

    /** Notes that an acknowledgement of all was asked for. */
    void asked() {
        unasked = 0;
        hasty = false;
    }

    /** Whether frames are held that no piece has asked for. */
    boolean isAnyUnasked() {
        return unasked > 0;
    }

    /** What is held, or will be, is asked for at once. */
    void hasten() {
        hasty = true;
    }

    boolean isHasty() {
        return hasty;
    }

    /** Whether there are frames whose memory is held until they are acknowledged. */
    boolean isAnyHeld() {
        return heldCount > 0;
    }

    /** Notes that a piece arrived, perhaps not for the first time. */
    void arrived(long frame, int piece) {
        if (!isArrived(frame, piece)) {
            int slot = slot(frame);
            markArrived(slot, piece);
            missing[slot]--;
        }
    }

    /**
     * Notes that so many frames have arrived whole, whatever was acknowledged of their pieces; false if they were never
     * sent.
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
     * Whether there is no place for another frame: the receiver's window keeps one until it has a destination, and too
     * many may not hold their memory.
     */
    boolean isFull() {
        return added - Math.min(completed, accepted) == pieces.window() || added - released == pieces.inFlight();
    }

    /** How many frames' memory is their owner's again. */
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
