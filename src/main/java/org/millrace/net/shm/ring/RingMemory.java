package org.millrace.net.shm.ring;

import java.lang.foreign.MemorySegment;

/** The mapped bytes of a ring, and the accesses that rings need, named by their ordering. */
public abstract sealed class RingMemory permits SegmentMemory, ChronicleMemory {

    abstract long getLong(long offset);

    abstract void putLong(long offset, long value);

    abstract long getLongAcquire(long offset);

    abstract void putLongRelease(long offset, long value);

    /** Copies from the caller's memory to the ring. */
    abstract void copyIn(long offset, MemorySegment from, long fromOffset, long bytes);

    /** Copies from the ring to the caller's memory. */
    abstract void copyOut(long offset, MemorySegment to, long toOffset, long bytes);

    /** Whether {@link #copyOut} stores words of 8 bytes whole where addresses and length are multiples of 8. */
    abstract boolean copiesWholeWords();

    /** Gives the mapping back; may be called again, and by any thread. */
    public abstract void close();
}
