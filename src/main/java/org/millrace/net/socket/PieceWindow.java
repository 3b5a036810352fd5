package org.millrace.net.socket;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameHeader;

/**
 * The frames in flight on one side of a connection: a ring, oldest first. Frames are numbered from 0 for the life of
 * the connection; a slot is a frame's place in the ring. Pieces arrive in any order, frames complete in order. One
 * thread.
 */
abstract sealed class PieceWindow permits SendWindow, ReceiveWindow {

    final Pieces pieces;
    final FrameHeader[] headers;
    final @Nullable ByteBuffer[] views;
    final int[] starts;
    /**
     * By slot: number of unfinished pieces. The sender waits for their acknowledgements, the receiver for their data.
     */
    final int[] missing;
    /** By slot: a bit for each arrived piece. The arrays grow to the slot's longest frame. */
    private final long[][] arrived;
    private final int mask;
    /** Number of complete frames. */
    long completed;
    /** Number of frames with a destination at the receiver. */
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

    /** Marks all pieces of a slot's new frame as missing. */
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

    /** Returns whether a piece has arrived in the receiver's process, at any place. */
    final boolean isArrived(long frame, int piece) {
        return frame < completed || (arrived[slot(frame)][piece >> 6] & 1L << piece) != 0;
    }

    final void markArrived(int slot, int piece) {
        arrived[slot][piece >> 6] |= 1L << piece;
    }

    /** Marks all pieces of a slot's frame as arrived. */
    final void markAllArrived(int slot) {
        missing[slot] = 0;
        Arrays.fill(arrived[slot], -1);
    }

    final long completed() {
        return completed;
    }

    /** Returns the number of frames with a destination, as far as this side knows. */
    final long accepted() {
        return accepted;
    }

    /** Returns the memory of a frame that has memory. */
    final ByteBuffer view(long frame) {
        return Objects.requireNonNull(views[slot(frame)]);
    }

    /** Returns the memory of a frame; null if it has none. */
    final @Nullable ByteBuffer source(long frame) {
        return views[slot(frame)];
    }

    final int start(long frame) {
        return starts[slot(frame)];
    }
}
