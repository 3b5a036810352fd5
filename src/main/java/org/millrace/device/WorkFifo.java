package org.millrace.device;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.abi.kernel.WorkFifoCounters;

/**
 * The ring buffer of work items between a host and its device. On the host, one thread at a time adds work items and
 * frees the room of completed kernels. Kernels read the work items.
 *
 * <p>
 * The position of a byte is the number of bytes that were added to the FIFO before that byte, modulo 2<sup>32</sup>.
 * The size of the ring is a power of two, so the low bits of a position are the offset in the ring. Work items are
 * copied 16 bytes at a time. A work item that crosses the end of the ring continues at the beginning of the ring.
 */
public final class WorkFifo {

    /** Unit of sizes and positions in bytes. The sizes of work items and all positions are multiples of this unit. */
    public static final int UNIT = 16;
    /**
     * Maximum size of a FIFO in bytes, as in NCCL. Positions of 32 bits would allow a FIFO of twice this size.
     */
    public static final int MAX_BYTES = 1 << 30;

    private final MemorySegment buffer;
    private final WorkFifoCounters counters;
    private final int bytes;
    private int produced;
    private int consumed;

    /**
     * @param buffer memory of the ring: {@value #UNIT} to {@value #MAX_BYTES} bytes, a power of two, aligned to
     *               {@value #UNIT}
     * @param first  initial value of both counters, a multiple of {@value #UNIT}: 0, except in tests of the counters'
     *               wrap
     * @throws IllegalArgumentException if the size or the first position is not allowed
     */
    public WorkFifo(MemorySegment buffer, WorkFifoCounters counters, int first) {
        long size = buffer.byteSize();
        if (Long.bitCount(size) != 1 || size < UNIT || size > MAX_BYTES) {
            throw new IllegalArgumentException("a work FIFO of " + size
                    + " bytes: set NCCL_WORK_FIFO_BYTES to a power of two from " + UNIT + " to " + MAX_BYTES);
        }
        if (first % UNIT != 0) {
            throw new IllegalArgumentException("a work FIFO that begins at " + Integer.toUnsignedString(first)
                    + ": positions are multiples of " + UNIT);
        }
        this.buffer = buffer.asSlice(0, size, UNIT);
        this.counters = counters;
        this.bytes = (int) size;
        this.produced = first;
        this.consumed = first;
        counters.consumedRelease(first);
        counters.producedRelease(first);
    }

    /** Returns whether a number of bytes can be added now. Bytes that kernels may still read also occupy room. */
    public boolean hasRoom(int itemBytes) {
        return Integer.compareUnsigned(produced + itemBytes - consumed, bytes) <= 0;
    }

    /**
     * Adds work items and returns the position of the first item. The release store to the counter {@code produced}
     * publishes the copied items.
     *
     * @param items memory of the work items, a multiple of {@value #UNIT} bytes
     * @throws IllegalStateException if there is not enough room
     */
    public int put(MemorySegment items) {
        int length = Math.toIntExact(items.byteSize());
        if (!hasRoom(length) || length % UNIT != 0) {
            throw new IllegalStateException(length + " bytes of work do not fit into " + this);
        }
        int first = produced;
        for (int at = 0; at < length; at += UNIT) {
            long offset = first + at & bytes - 1;
            buffer.set(ValueLayout.JAVA_LONG, offset, items.get(ValueLayout.JAVA_LONG, at));
            buffer.set(ValueLayout.JAVA_LONG, offset + Long.BYTES, items.get(ValueLayout.JAVA_LONG, at + Long.BYTES));
        }
        produced = first + length;
        counters.producedRelease(produced);
        return first;
    }

    /**
     * Frees the room of all bytes before a position. All kernels that read these bytes must have completed.
     *
     * @throws IllegalArgumentException if the position does not lie between the two counters
     */
    public void consume(int position) {
        if (Integer.compareUnsigned(position - consumed, produced - consumed) > 0) {
            throw new IllegalArgumentException("position " + Integer.toUnsignedString(position) + " is not in " + this);
        }
        consumed = position;
        counters.consumedRelease(position);
    }

    /** Returns the position after the last work item that was added, modulo 2<sup>32</sup>. */
    public int produced() {
        return produced;
    }

    /** Returns the number of bytes that kernels may still read: the occupied room. */
    public int used() {
        return produced - consumed;
    }

    public int bytes() {
        return bytes;
    }

    /** Returns the address of the ring's memory, for a kernel's arguments. */
    public long address() {
        return buffer.address();
    }

    @Override
    public String toString() {
        return "the work FIFO of " + bytes + " bytes" + " (produced " + Integer.toUnsignedString(produced)
                + ", consumed " + Integer.toUnsignedString(consumed) + ")";
    }
}
