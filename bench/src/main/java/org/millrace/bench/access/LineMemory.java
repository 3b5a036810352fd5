package org.millrace.bench.access;

import java.lang.foreign.MemorySegment;

/**
 * The memory that this JVM's accesses go to. One JVM measures one kind, and the segment is a constant for its compiler:
 * so nothing of a segment is left in the loops but what the language demands.
 */
public final class LineMemory {

    /**
     * Flags are the eight words at the beginning, data those at {@link #DATA}; what contends looks at up to three lines
     * behind the flags.
     */
    public static final long BYTES = 512;
    /** Where the data lies. */
    static final long DATA = 256;
    /** Where a poster looks for the other side's answer. */
    static final long POLLED = DATA + 64;

    private static MemorySegment chosen;

    private LineMemory() {}

    /**
     * Says which memory; before the first access.
     *
     * @param segment {@link #BYTES} bytes of native memory, aligned to as much
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
