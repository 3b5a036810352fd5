package org.millrace.net.socket;

/**
 * Pieces in an order: each has a number, counted from 0, by which it can be looked at until it is taken. One thread.
 */
final class PieceQueue {

    private final long[] frames;
    private final int[] pieces;
    private final int[] lengths;
    private final long[] times;
    private final int mask;
    private long taken;
    private long added;

    /**
     * An empty queue.
     *
     * @param capacity a power of two
     */
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

    /** Removes the oldest. */
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

    /** Bytes of the oldest. */
    int length() {
        return length(taken);
    }

    int length(long at) {
        return lengths[(int) at & mask];
    }

    /** When the oldest was added. */
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

    /** How many were ever taken. */
    long taken() {
        return taken;
    }

    /** How many were ever added. */
    long added() {
        return added;
    }
}
