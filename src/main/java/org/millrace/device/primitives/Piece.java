package org.millrace.device.primitives;

import java.lang.foreign.MemorySegment;

/**
 * A piece of a thread's own memory between lines and the arithmetic.
 *
 * @param words    as lines take it apart
 * @param elements the same memory, as it is copied and combined
 */
record Piece(long[] words, MemorySegment elements) {

    /** A piece of zeros; of a length that is a multiple of 8. */
    static Piece of(int bytes) {
        long[] words = new long[bytes / Long.BYTES];
        return new Piece(words, MemorySegment.ofArray(words));
    }
}
