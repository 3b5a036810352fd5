package org.millrace.net.socket.rails;

import java.util.Arrays;

/**
 * Which pieces of the frames of a window have arrived. A slot's bits grow to the longest frame that it ever had. One
 * thread.
 */
final class PieceBits {

    private final long[][] words;

    PieceBits(int slots) {
        words = new long[slots][1];
    }

    /** No piece of a slot's new frame has arrived. */
    void clear(int slot, int pieces) {
        int length = (pieces - 1 >> 6) + 1;
        if (words[slot].length < length) {
            words[slot] = new long[length];
        } else {
            Arrays.fill(words[slot], 0, length, 0);
        }
    }

    boolean has(int slot, int piece) {
        return (words[slot][piece >> 6] & 1L << piece) != 0;
    }

    void set(int slot, int piece) {
        words[slot][piece >> 6] |= 1L << piece;
    }
}
