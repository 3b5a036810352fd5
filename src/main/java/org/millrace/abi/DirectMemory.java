package org.millrace.abi;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * How a sending device points the receiving one, with no proxy between them, to data in the user's memory (mode PTR):
 * the receiver reads it there, and nobody copies it into a slot.
 *
 * <p>
 * Within a process the sender says which segment it means, so that a program that closes its memory too early gets an
 * error, as it does from its own device. Between processes the receiver has the sender's whole heap mapped, and
 * {@code connFifo.ptr} is an offset there.
 *
 * <p>
 * A slot's mode is looked at only when the sender has ever pointed: {@code connFifo} is not in the line of tail, and a
 * receiver that never needs it does not fetch it.
 *
 * <pre>
 *   sender: used = 1, connFifo[slot].mode, ptr, tail (release)   →   receiver: tail (acquire), used, connFifo[slot]
 * </pre>
 */
public final class DirectMemory {

    /** Memory that both ends share for it, of zeros: a line of its own. */
    public static final long BYTES = 128;

    private final long used;
    /** Keeps what holds {@code used}. */
    private final MemorySegment line;
    /** By slot; null between processes. */
    private final @Nullable MemorySegment @Nullable [] segments;
    /** Between processes the sender's heap, as this end has it mapped; null in a process. */
    private final @Nullable MemorySegment heap;

    private DirectMemory(MemorySegment line, @Nullable MemorySegment @Nullable [] segments,
            @Nullable MemorySegment heap) {
        this.line = line;
        this.used = line.address();
        this.segments = segments;
        this.heap = heap;
    }

    /**
     * {@return one end's, where both are of one process}
     *
     * @param segments as many as there are slots, the same array on both ends
     */
    public static DirectMemory inProcess(MemorySegment line, @Nullable MemorySegment[] segments) {
        return new DirectMemory(line, segments, null);
    }

    /**
     * {@return one end's, where the ends are of two processes}
     *
     * @param heap all memory that the sender may point to, where this end has it mapped
     */
    public static DirectMemory ofHeap(MemorySegment line, MemorySegment heap) {
        return new DirectMemory(line, null, heap);
    }

    /** {@return whether the other end can read there} */
    public boolean reaches(MemorySegment memory) {
        return heap == null || contains(heap, memory);
    }

    /** {@return whether all of some memory lies in other memory} */
    public static boolean contains(MemorySegment all, MemorySegment memory) {
        long offset = memory.address() - all.address();
        return offset >= 0 && offset <= all.byteSize() - memory.byteSize();
    }

    /** Says where a step's data is; a later release of tail publishes it. The sender's. */
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
     * {@return whether a step's data is where {@link #point} said, and not in its slot; after an acquire of tail. The
     * receiver's}
     */
    public boolean isPointed(RecvMem recvMem, int slot) {
        return (int) Words.INT.get(Words.MEMORY, used) != 0 && recvMem.modePlain(slot) == RecvMem.MODE_PTR;
    }

    /** {@return where a step's data is that was pointed to: at {@code connFifo.ptr} of it} */
    public MemorySegment memory(int slot) {
        return heap == null ? segments[slot] : heap;
    }

    /** The receiver has read the data of a step: its memory is not kept. */
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
