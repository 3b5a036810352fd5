package org.millrace.net.socket;

import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import org.millrace.foreign.PageMemory;

/**
 * Buffers for pieces whose frames have no destination yet, so that later pieces on the same stream can be received.
 * Each buffer is large enough for any piece, but occupies only as much memory as its longest piece so far. Used by one
 * thread.
 */
final class UnexpectedPieces {

    private final int pieceBytes;
    private final Arena memory;
    private final ByteBuffer[] places;
    private final long[] frames;
    private final int[] pieces;
    private final int[] lengths;
    private final boolean[] taken;
    private final boolean[] whole;
    private int count;

    /** Creates a number of buffers. Their memory is allocated in the arena at their first use. */
    UnexpectedPieces(int capacity, int pieceBytes, Arena memory) {
        this.pieceBytes = pieceBytes;
        this.memory = memory;
        places = new ByteBuffer[capacity];
        frames = new long[capacity];
        pieces = new int[capacity];
        lengths = new int[capacity];
        taken = new boolean[capacity];
        whole = new boolean[capacity];
    }

    /**
     * Reserves a buffer for a piece, and returns its index. Returns -1 if no buffer is free. A peer that follows the
     * protocol never needs more buffers than exist.
     */
    int take(long frame, int piece, int length) {
        for (int place = 0; place < places.length; place++) {
            if (!taken[place]) {
                if (places[place] == null) {
                    places[place] = PageMemory.allocate(pieceBytes, memory).asByteBuffer();
                }
                taken[place] = true;
                whole[place] = false;
                frames[place] = frame;
                pieces[place] = piece;
                lengths[place] = length;
                count++;
                return place;
            }
        }
        return -1;
    }

    void free(int place) {
        taken[place] = false;
        count--;
    }

    void whole(int place) {
        whole[place] = true;
    }

    ByteBuffer buffer(int place) {
        return places[place];
    }

    /** Copies a piece to its destination, and frees its buffer. */
    void moveTo(int place, ByteBuffer view, int at) {
        view.clear().put(at, places[place].clear(), 0, lengths[place]);
        free(place);
    }

    /** Copies all complete pieces of a frame to the frame's destination. Returns the number of pieces. */
    int moveAll(long frame, ByteBuffer view, int start, Pieces rule) {
        int moved = 0;
        for (int place = 0; count > 0 && place < places.length; place++) {
            if (taken[place] && whole[place] && frames[place] == frame) {
                moveTo(place, view, start + rule.offset(pieces[place]));
                moved++;
            }
        }
        return moved;
    }
}
