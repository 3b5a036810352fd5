package org.millrace.net;

import java.lang.foreign.MemorySegment;

/** All native memory of this process as one segment, for networks that need to know nothing of it. */
public final class AllMemory {

    /** User space of a 64-bit process on Linux: an offset is an address. Nothing is checked but that. */
    public static final MemorySegment SEGMENT = unbounded();

    private AllMemory() {}

    @SuppressWarnings("restricted") // whoever takes an address from it must know what lies there
    private static MemorySegment unbounded() {
        return MemorySegment.NULL.reinterpret(1L << 47);
    }
}
