package org.millrace.abi.gin;

import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.millrace.foreign.PolledStruct;
import org.millrace.foreign.Words;

/**
 * Array of cells: the counters or the signals of a GIN context, or the offsets that NCCL 2.30 uses to reset signals.
 * Each cell is a number of 64 bits that grows and wraps.
 *
 * <p>
 * The proxy increases counters and signals, and the kernel resets them. The proxy's add has release semantics and pairs
 * with the acquire of the kernel that waits for the cell. After this acquire the kernel sees the bytes of the earlier
 * puts.
 */
public final class GinCells extends PolledStruct {
    private final int count;

    private GinCells(MemorySegment segment) {
        super("the cells of a GIN context", segment, segment.byteSize() & -Long.BYTES, Long.BYTES);
        this.count = (int) (segment.byteSize() / Long.BYTES);
    }

    /**
     * {@return a view of the cells in a segment}
     *
     * @throws IllegalArgumentException if the size of the segment is not a multiple of 8 bytes, or the segment is not
     *                                  aligned to 8 bytes
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

    /** {@return the value of a cell; later accesses of this thread happen after this load} */
    public long acquire(int cell) {
        return (long) Words.LONG.getAcquire(Words.MEMORY, at(cell));
    }

    /**
     * Adds a value to a cell, after all earlier accesses of this thread. The add is atomic, because a kernel may reset
     * the cell at the same time.
     */
    public void addRelease(int cell, long value) {
        long before = (long) Words.LONG.getAndAddRelease(Words.MEMORY, at(cell), value);
    }

    /** Stores the value of a cell, after all earlier accesses of this thread. */
    public void release(int cell, long value) {
        Words.LONG.setRelease(Words.MEMORY, at(cell), value);
    }

    /**
     * Adds a value to a 64-bit number in any memory, after all earlier accesses of this thread. Used for a signal that
     * lies in a window.
     */
    public static void addRelease(MemorySegment memory, long offset, long value) {
        long before = (long) Words.LONG.getAndAddRelease(memory, offset, value);
    }
}
