package org.millrace.device;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.device.ChunkShape.Slices;

/**
 * The primitives of protocol Simple. A primitive works slice by slice, with any number of receiving and sending
 * connections. A chunk always has the same number of slices. The slices after the end of the data are empty.
 *
 * <p>
 * Elements of several peers are combined in the order of their ports, after this rank's elements. The result therefore
 * does not depend on the order of arrival.
 */
final class SimplePrimitives extends Primitives {

    /**
     * Size of a piece in bytes. If a slice is accessed more than once, it is processed in pieces. A piece is small
     * enough to stay in the first-level cache between two accesses.
     */
    private static final long PIECE_BYTES = 16 * 1024;

    private static final boolean[] NO_PEER = {};

    private final int chunkSteps;
    private final int sliceSteps;
    private final Slices slices;
    /**
     * For each sending connection: whether the peer's device can read this rank's input directly. The array is empty if
     * no peer's device can read it.
     */
    private final boolean[] inputRead;
    private final boolean[] outputRead;
    /** Whether this rank has told a peer to read elements from this rank's memory. */
    private boolean pointed;

    private long elements;
    private long sliceElements;
    private long elementsDone;
    private int slice;

    SimplePrimitives(ReceivePort[] from, SendPort[] to, BlockMemory memory, ChunkShape shape) {
        super(from, to, memory);
        this.chunkSteps = shape.chunkSteps();
        this.sliceSteps = shape.sliceSteps();
        this.slices = Slices.of(from, to, elementBytes, chunkSteps, sliceSteps);
        this.slice = slices.perChunk();
        this.inputRead = memory.readInput() ? reached(to, memory.input()) : NO_PEER;
        this.outputRead = memory.readOutput() ? reached(to, memory.output()) : NO_PEER;
    }

    private static boolean[] reached(SendPort[] to, MemorySegment memory) {
        boolean[] reached = new boolean[to.length];
        for (int i = 0; i < to.length; i++) {
            reached[i] = to[i].reaches(memory);
        }
        return reached;
    }

    @Override
    public void enter() {
        pointed = false;
        enter(chunkSteps);
    }

    @Override
    public void begin(int primitiveKind, long inputElement, long outputElement, long elementCount) {
        set(primitiveKind, inputElement, outputElement);
        elements = Math.max(elementCount, 0);
        sliceElements = slices.elements(elements);
        elementsDone = 0;
        slice = 0;
    }

    @Override
    public boolean complete() {
        return slice == slices.perChunk();
    }

    @Override
    public int progress() {
        int moved = 0;
        while (slice < slices.perChunk() && waitedFor() == null) {
            long count = Math.min(sliceElements, elements - elementsDone);
            for (int i = 0; i < sends; i++) {
                to[i].postSize(count * elementBytes);
            }
            for (int i = 0; i < receives; i++) {
                from[i].unpack(count * elementBytes);
            }
            move(count * elementBytes);
            for (int i = 0; i < sends; i++) {
                to[i].post(sliceSteps);
            }
            for (int i = 0; i < receives; i++) {
                from[i].release(sliceSteps);
            }
            elementsDone += count;
            slice++;
            moved++;
        }
        return moved;
    }

    @Override
    @Nullable
    Port waitedFor() {
        Port waited = notReady(receives, sends, sliceSteps);
        return waited == null && complete() ? reader() : waited;
    }

    /**
     * Returns whether all peers have finished reading this rank's memory. The kernel must not end earlier, because the
     * user may reuse the memory after the kernel's end.
     */
    @Override
    public boolean drained() {
        return reader() == null;
    }

    /** Returns the connection to the first peer that still reads this rank's memory; null if no peer does. */
    private @Nullable Port reader() {
        for (int i = 0; pointed && i < to.length; i++) {
            if ((reads(inputRead, i) || reads(outputRead, i)) && !to[i].allTaken()) {
                return to[i];
            }
        }
        return null;
    }

    /**
     * Moves the data of one slice from the input and the receiving slots to the output and the sending slots. The kind
     * of the primitive determines the sources and destinations in use.
     */
    private void move(long bytes) {
        boolean writes = (kind & OUTPUT) != 0;
        long done = elementsDone * elementBytes;
        boolean passes = (kind & (INPUT | RECEIVE | OUTPUT)) == INPUT && !memory.own().hasPreOp();
        boolean[] read = bytes == 0 ? NO_PEER : writes ? outputRead : passes ? inputRead : NO_PEER;
        point(read, writes ? memory.output() : memory.input(), writes ? outputOffset + done : inputOffset + done);
        int first = writes ? -1 : notIn(read, 0);
        if (first == sends) {
            // All peers read the slice directly from this rank's memory, so nothing is copied.
            return;
        }
        MemorySegment destination = writes ? memory.output() : to[first].buffer();
        long destinationAt = writes ? outputOffset + done : to[first].slotOffset();
        long piece = notIn(read, first + 1) < sends || receives > 1 ? PIECE_BYTES : bytes;
        for (long at = 0; at < bytes; at += piece) {
            long length = Math.min(piece, bytes - at);
            combine(destination, destinationAt + at, inputOffset + done + at, at, length);
            for (int i = notIn(read, first + 1); i < sends; i = notIn(read, i + 1)) {
                MemorySegment.copy(destination, destinationAt + at, to[i].buffer(), to[i].slotOffset() + at, length);
            }
        }
    }

    /**
     * Tells each peer whether to read the slice directly from this rank's memory or from the step's slot.
     *
     * @param read   for each sending connection: whether the peer can read this rank's memory directly
     * @param where  memory that contains the slice
     * @param offset offset of the slice in {@code where}
     */
    private void point(boolean[] read, MemorySegment where, long offset) {
        for (int i = 0; i < sends; i++) {
            if (reads(read, i)) {
                to[i].pointDirectly(where, offset);
                pointed = true;
            } else {
                to[i].keepInSlot();
            }
        }
    }

    /**
     * Searches the sending connections from a given index on. Returns the index of the first connection that needs the
     * slice in its slot, or the number of sending connections if none does.
     */
    private int notIn(boolean[] read, int begin) {
        int i = begin;
        while (i < sends && reads(read, i)) {
            i++;
        }
        return i;
    }

    private static boolean reads(boolean[] read, int peer) {
        return peer < read.length && read[peer];
    }

    /**
     * Combines a piece of this rank's input with the same piece of all received slots.
     *
     * @param at offset of the piece in each receiving slot
     */
    private void combine(MemorySegment destination, long destinationAt, long inputAt, long at, long bytes) {
        long count = bytes / elementBytes;
        if ((kind & INPUT) == 0) {
            MemorySegment.copy(from[0].data(), from[0].dataOffset() + at, destination, destinationAt, bytes);
        } else if (receives == 0) {
            memory.own().copy(memory.input(), inputAt, destination, destinationAt, count);
        } else {
            boolean last = (kind & LAST) != 0;
            memory.own()
                    .reduce(memory.input(), inputAt, from[0].data(), from[0].dataOffset() + at, destination,
                            destinationAt, count, last && receives == 1);
            for (int i = 1; i < receives; i++) {
                memory.among()
                        .reduce(from[i].data(), from[i].dataOffset() + at, destination, destinationAt, destination,
                                destinationAt, count, last && i == receives - 1);
            }
        }
    }
}
