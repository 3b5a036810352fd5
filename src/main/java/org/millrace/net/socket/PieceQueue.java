package org.millrace.net.socket;

/**
 * A queue of pieces. Each piece has a number, counted from 0 at the beginning of the queue. A piece can be read by its
 * number until it is removed. Used by one thread.
 */
final class PieceQueue {

    private final long[] frames;
    private final int[] pieces;
    private final int[] lengths;
    private final long[] times;
    private final int mask;
    private long taken;
    private long added;

    /** @param capacity maximum number of pieces, a power of two */
    PieceQueue(int capacity) {
        frames = new long[capacity];
        pieces = new int[capacity];
        lengths = new int[capacity];
        times = new long[capacity];
        mask = capacity - 1;
    }

    void add(long frame, int piece, int length, long time) {
        int at = (int) added & mask;
        frames[at] = frame;
        pieces[at] = piece;
        lengths[at] = length;
        times[at] = time;
        added++;
    }

    /** Removes the oldest piece. */
    void take() {
        taken++;
    }

    long frame() {
        return frame(taken);
    }

    long frame(long at) {
        return frames[(int) at & mask];
    }

    int piece() {
        return piece(taken);
    }

    int piece(long at) {
        return pieces[(int) at & mask];
    }

    /** Returns the length of the oldest piece in bytes. */
    int length() {
        return length(taken);
    }

    int length(long at) {
        return lengths[(int) at & mask];
    }

    /** Returns the time at which the oldest piece was added. */
    long time() {
        return time(taken);
    }

    long time(long at) {
        return times[(int) at & mask];
    }

    int size() {
        return (int) (added - taken);
    }

    boolean isEmpty() {
        return added == taken;
    }

    /** Returns the number of pieces removed so far. */
    long taken() {
        return taken;
    }

    /** Returns the number of pieces added so far. */
    long added() {
        return added;
    }
}
