package org.millrace.net.socket;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameHeader;

/**
 * The frames in flight at one end of a connection: a ring with the oldest frame first. Frames are numbered from 0 over
 * the whole life of the connection. A frame's slot is its index in the ring. The pieces of a frame arrive in any order,
 * but frames are completed in the order of their numbers. Used by one thread.
 */
abstract sealed class PieceWindow permits SendWindow, ReceiveWindow {

    final Pieces pieces;
    final FrameHeader[] headers;
    final @Nullable ByteBuffer[] views;
    final int[] starts;
    /**
     * Number of unfinished pieces of each slot's frame. At the sender these are pieces without an acknowledgement, and
     * at the receiver pieces without their data.
     */
    final int[] missing;
    /**
     * For each slot, the bit set of its frame's arrived pieces, in an array. The array grows until it has room for the
     * longest frame that has used the slot.
     */
    private final long[][] arrived;
    private final int mask;
    long completed;
    /** Number of frames that have a destination at the receiver. */
    long accepted;

    PieceWindow(Pieces pieces) {
        this.pieces = pieces;
        int capacity = Integer.highestOneBit(pieces.window() * 2 - 1);
        mask = capacity - 1;
        headers = new FrameHeader[capacity];
        Arrays.setAll(headers, slot -> new FrameHeader());
        views = new ByteBuffer[capacity];
        starts = new int[capacity];
        missing = new int[capacity];
        arrived = new long[capacity][1];
    }

    final int slot(long frame) {
        return (int) frame & mask;
    }

    /** Marks all pieces of the new frame in a slot as not arrived. */
    final void beginPieces(int slot) {
        int count = pieces.count((int) headers[slot].payloadBytes());
        missing[slot] = count;
        int words = (count - 1 >> 6) + 1;
        if (arrived[slot].length < words) {
            arrived[slot] = new long[words];
        } else {
            Arrays.fill(arrived[slot], 0, words, 0);
        }
    }

    /** Returns whether a piece has arrived in the receiver's process, at its destination or in another buffer. */
    final boolean isArrived(long frame, int piece) {
        return frame < completed || (arrived[slot(frame)][piece >> 6] & 1L << piece) != 0;
    }

    final void markArrived(int slot, int piece) {
        arrived[slot][piece >> 6] |= 1L << piece;
    }

    final void markAllArrived(int slot) {
        missing[slot] = 0;
        Arrays.fill(arrived[slot], -1);
    }

    final long completed() {
        return completed;
    }

    /**
     * Returns the number of frames that have a destination. At the sender, this is the largest number that an
     * acknowledgement has reported.
     */
    final long accepted() {
        return accepted;
    }

    /** Returns the memory of a frame. The frame must have memory. */
    final ByteBuffer view(long frame) {
        return Objects.requireNonNull(views[slot(frame)]);
    }

    /** Returns the memory of a frame; null for a frame without memory. */
    final @Nullable ByteBuffer source(long frame) {
        return views[slot(frame)];
    }

    final int start(long frame) {
        return starts[slot(frame)];
    }
}
