package org.millrace.abi;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.foreign.Words;

/**
 * Pointers of a sending device to data in the user's memory, for the receiving device (mode PTR). Two devices use this
 * mode if no proxy lies between them. The receiving device reads the data from the user's memory, and no thread copies
 * the data into a slot.
 *
 * <p>
 * Within a process the sender passes the segment itself. If the sender's program closes the memory too early, both the
 * sending and the receiving device therefore report an error. Between processes the receiver has mapped the sender's
 * whole heap, and {@code connFifo.ptr} is an offset in that heap.
 *
 * <p>
 * The sender sets {@code used} when it first points to the user's memory. The receiver reads the mode of a slot only if
 * {@code used} is set. {@code connFifo} and tail lie in different cache lines. Without {@code used}, the receiver would
 * always fetch both cache lines.
 *
 * <pre>
 *   sender: used = 1, connFifo[slot].mode, ptr, tail (release)   →   receiver: tail (acquire), used, connFifo[slot]
 * </pre>
 */
public final class DirectMemory {

    /**
     * Size in bytes of the memory that contains {@code used}: one cache line without other data. Both ends share this
     * memory, which is 0 at first.
     */
    public static final long BYTES = 128;

    private final long used;
    /** Memory that contains {@code used}. The reference prevents the memory from being freed. */
    private final MemorySegment line;
    /** Segments that contain the sender's data, indexed by slot; null if the ends belong to two processes. */
    private final @Nullable MemorySegment @Nullable [] segments;
    /** The sender's heap as it is mapped in this process; null if both ends belong to one process. */
    private final @Nullable MemorySegment heap;

    private DirectMemory(MemorySegment line, @Nullable MemorySegment @Nullable [] segments,
            @Nullable MemorySegment heap) {
        this.line = line;
        this.used = line.address();
        this.segments = segments;
        this.heap = heap;
    }

    /**
     * {@return the object for one end of a connection inside one process}
     *
     * @param segments array with one element for each slot; both ends use the same array
     */
    public static DirectMemory inProcess(MemorySegment line, @Nullable MemorySegment[] segments) {
        return new DirectMemory(line, segments, null);
    }

    /**
     * {@return the object for one end of a connection between two processes}
     *
     * @param heap mapping in this process of all memory that the sender may point to
     */
    public static DirectMemory ofHeap(MemorySegment line, MemorySegment heap) {
        return new DirectMemory(line, null, heap);
    }

    /** {@return whether the peer can read a segment of this process's memory} */
    public boolean reaches(MemorySegment memory) {
        return heap == null || contains(heap, memory);
    }

    /**
     * {@return whether one segment lies completely in another}
     *
     * @param all    the outer segment
     * @param memory the inner segment
     */
    public static boolean contains(MemorySegment all, MemorySegment memory) {
        long offset = memory.address() - all.address();
        return offset >= 0 && offset <= all.byteSize() - memory.byteSize();
    }

    /**
     * Records in {@code connFifo} that the data of a slot lies in the user's memory. A later release of tail publishes
     * the record. Called by the sender.
     *
     * @param offset offset of the data in {@code memory}
     */
    public void point(RecvMem recvMem, int slot, MemorySegment memory, long offset) {
        Words.INT.set(Words.MEMORY, used, 1);
        recvMem.modePlain(slot, RecvMem.MODE_PTR);
        if (heap == null) {
            segments[slot] = memory;
            recvMem.ptrPlain(slot, offset);
        } else {
            recvMem.ptrPlain(slot, memory.address() + offset - heap.address());
        }
    }

    /**
     * Returns whether {@link #point} recorded that the data of a slot lies in the user's memory instead of in the slot.
     * Called by the receiver, after an acquire of tail.
     */
    public boolean isPointed(RecvMem recvMem, int slot) {
        return (int) Words.INT.get(Words.MEMORY, used) != 0 && recvMem.modePlain(slot) == RecvMem.MODE_PTR;
    }

    /**
     * Returns the segment that contains the data of a slot. The data begins at offset {@code connFifo.ptr}. Called by
     * the receiver if {@link #isPointed}.
     */
    public MemorySegment memory(int slot) {
        return heap == null ? segments[slot] : heap;
    }

    /**
     * Records that the receiver has read the data of a slot. This object then drops its reference to the user's memory.
     */
    public void read(int slot) {
        if (heap == null) {
            segments[slot] = null;
        }
    }

    @Override
    public String toString() {
        return heap == null ? "memory of one process" : "a heap of " + heap.byteSize() + " bytes, " + line;
    }
}
