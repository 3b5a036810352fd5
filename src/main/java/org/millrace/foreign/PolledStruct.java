package org.millrace.foreign;

import java.lang.foreign.MemorySegment;

/**
 * A struct that threads poll. The constructor checks the segment once. All accesses then use the address of the struct.
 */
public abstract class PolledStruct {

    /**
     * Memory of the struct. This reference prevents memory of an automatic arena from being freed while this object is
     * used.
     */
    private final MemorySegment segment;
    protected final long base;

    /** @throws IllegalArgumentException if the segment has another size or alignment, or lies in Java's heap */
    protected PolledStruct(String name, MemorySegment segment, long bytes, long alignment) {
        this.segment = Words.checked(name, segment, bytes, alignment);
        this.base = Words.address(name, this.segment);
    }
}
