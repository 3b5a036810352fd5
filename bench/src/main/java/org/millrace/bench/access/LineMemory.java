package org.millrace.bench.access;

import java.lang.foreign.MemorySegment;

/**
 * Memory that the accesses in this JVM use. One JVM measures one kind of memory, so the segment is a constant for the
 * compiler. The loops therefore contain only those checks of a segment that the language requires.
 */
public final class LineMemory {

    /**
     * Size in bytes. The eight words at the beginning are flags. The words at {@link #DATA} are data. Another thread,
     * for contention, accesses one of the three lines from the flags on.
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
