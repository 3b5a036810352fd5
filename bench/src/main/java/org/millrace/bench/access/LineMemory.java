package org.millrace.bench.access;

import java.lang.foreign.MemorySegment;

/**
 * The memory of this JVM's accesses. One JVM measures one kind, and the segment is a constant for its compiler. The
 * loops therefore contain only those parts of a segment's checks that the language requires.
 */
public final class LineMemory {

    /**
     * Size in bytes. The eight words at the beginning are flags, and the words at {@link #DATA} are data. Contending
     * threads access up to three lines after the flags.
     */
    public static final long BYTES = 512;
    /** Offset of the data. */
    static final long DATA = 256;
    /** Offset at which a poster polls for the other side's answer. */
    static final long POLLED = DATA + 64;

    private static MemorySegment chosen;

    private LineMemory() {}

    /**
     * Sets the memory before the first access.
     *
     * @param segment {@link #BYTES} bytes of native memory, aligned to the same number
     */
    public static void choose(MemorySegment segment) {
        chosen = segment.asSlice(0, BYTES, BYTES);
    }

    static MemorySegment chosen() {
        if (chosen == null) {
            throw new IllegalStateException("no memory was chosen for the accesses");
        }
        return chosen;
    }
}
