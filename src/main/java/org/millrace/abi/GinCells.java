package org.millrace.abi;

import java.lang.foreign.MemorySegment;
import java.util.Objects;

/**
 * The 64-bit cells of a context that grow and wrap. They are its counters, its signals, and the offsets that 2.30 uses
 * to reset signals.
 *
 * <p>
 * The proxy increases counters and signals, and the kernel resets them. An add has release semantics and pairs with the
 * acquire of the kernel that waits. The kernel then sees the bytes that were put before.
 */
public final class GinCells extends PolledStruct {
    private final int count;

    private GinCells(MemorySegment segment) {
        super("the cells of a GIN context", segment, segment.byteSize() & -Long.BYTES, Long.BYTES);
        this.count = (int) (segment.byteSize() / Long.BYTES);
    }

    /**
     * {@return a view of cells}
     *
     * @throws IllegalArgumentException if the size or the alignment is wrong
     */
    public static GinCells of(MemorySegment segment) {
        return new GinCells(segment);
    }

    private long at(int cell) {
        return base + (long) Objects.checkIndex(cell, count) * Long.BYTES;
    }

    public int count() {
        return count;
    }

    /** {@return the value of a cell; later accesses of this thread stay after this load} */
    public long acquire(int cell) {
        return (long) Words.LONG.getAcquire(Words.MEMORY, at(cell));
    }

    /**
     * Adds to a cell, after all earlier accesses of this thread. The add is atomic because a kernel may reset the cell
     * at the same time.
     */
    public void addRelease(int cell, long value) {
        long before = (long) Words.LONG.getAndAddRelease(Words.MEMORY, at(cell), value);
    }

    /** Stores a cell. */
    public void release(int cell, long value) {
        Words.LONG.setRelease(Words.MEMORY, at(cell), value);
    }

    /**
     * Adds to 8 bytes of any memory, after all earlier accesses of this thread. Used for a signal that is part of a
     * window.
     */
    public static void addRelease(MemorySegment memory, long offset, long value) {
        long before = (long) Words.LONG.getAndAddRelease(memory, offset, value);
    }
}
