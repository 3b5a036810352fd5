package org.millrace.abi;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * Lets a sending device point the receiving device to data in the user's memory (mode PTR). No proxy lies between the
 * two devices. The receiver reads the data there, and no thread copies it into a slot.
 *
 * <p>
 * Within a process the sender passes the segment itself. A program that closes its memory too early therefore gets an
 * error from the receiving device, as it does from its own device. Between processes the receiver has the sender's
 * whole heap mapped, and {@code connFifo.ptr} is an offset in that heap.
 *
 * <p>
 * The receiver reads the mode of a slot only if the sender has pointed at least once. {@code connFifo} is not in the
 * cache line of tail, so a receiver that never needs it does not fetch it.
 *
 * <pre>
 *   sender: used = 1, connFifo[slot].mode, ptr, tail (release)   →   receiver: tail (acquire), used, connFifo[slot]
 * </pre>
 */
public final class DirectMemory {

    /** Bytes of memory, initially zero, that both ends share for this purpose: a separate line. */
    public static final long BYTES = 128;

    private final long used;
    /** Keeps the memory that contains {@code used} reachable. */
    private final MemorySegment line;
    /** Segments that the sender points to, indexed by slot; null between processes. */
    private final @Nullable MemorySegment @Nullable [] segments;
    /** The sender's heap between processes, as mapped on this end; null within a process. */
    private final @Nullable MemorySegment heap;

    private DirectMemory(MemorySegment line, @Nullable MemorySegment @Nullable [] segments,
            @Nullable MemorySegment heap) {
        this.line = line;
        this.used = line.address();
        this.segments = segments;
        this.heap = heap;
    }

    /**
     * {@return the view of one end if both ends belong to one process}
     *
     * @param segments one element for each slot, the same array on both ends
     */
    public static DirectMemory inProcess(MemorySegment line, @Nullable MemorySegment[] segments) {
        return new DirectMemory(line, segments, null);
    }

    /**
     * {@return the view of one end if the ends belong to two processes}
     *
     * @param heap all memory that the sender may point to, as mapped on this end
     */
    public static DirectMemory ofHeap(MemorySegment line, MemorySegment heap) {
        return new DirectMemory(line, null, heap);
    }

    /** {@return whether the peer can read this memory} */
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

    /** Sets the location of a step's data; a later release of tail publishes it. Called by the sender. */
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
     * {@return whether a step's data lies at the location that {@link #point} set, and not in its slot} Called by the
     * receiver, after an acquire of tail.
     */
    public boolean isPointed(RecvMem recvMem, int slot) {
        return (int) Words.INT.get(Words.MEMORY, used) != 0 && recvMem.modePlain(slot) == RecvMem.MODE_PTR;
    }

    /**
     * {@return the segment that contains the data of a step that was pointed to; the data begins at offset
     * {@code connFifo.ptr}}
     */
    public MemorySegment memory(int slot) {
        return heap == null ? segments[slot] : heap;
    }

    /** Records that the receiver has read the data of a step, so that this object no longer keeps its memory. */
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
