package org.millrace.device.primitives;

import java.lang.foreign.MemorySegment;
import org.millrace.abi.Protocol;

/** How a protocol lays data out in lines with flags. Without state; no call allocates. */
interface LineFormat {

    /** The protocol. */
    Protocol protocol();

    /** Bytes of the lines that so much data takes. */
    long lineBytes(long dataBytes);

    /** Bytes of data that fit into a slot. */
    long dataCapacity(long slotBytes);

    /** Takes data out of lines that are there. The piece has room for whole lines. */
    void unpack(MemorySegment lines, long at, Piece data, int bytes);

    /**
     * Makes lines of data, so that nobody finds a flag without the data that it vouches for. What lies behind the data
     * may be put into the last line.
     *
     * @param step whose flag the lines carry
     */
    void pack(Piece data, int bytes, MemorySegment lines, long at, long step);

    /**
     * Bytes of lines that a step says and fills: more than {@code lineBytes} where that is more than its data takes.
     */
    long postedBytes(long slotBytes, long lineBytes, long step);

    /** Whether a step is posted by tail, too. */
    boolean movesTail();

    /**
     * A piece of a thread's own memory between lines and the arithmetic: words as lines take it apart, and the same
     * memory as it is copied and combined.
     */
    record Piece(long[] words, MemorySegment elements) {

        /** A piece of zeros; of a length that is a multiple of 8. */
        static Piece of(int bytes) {
            long[] words = new long[bytes / Long.BYTES];
            return new Piece(words, MemorySegment.ofArray(words));
        }
    }
}
