package org.millrace.device;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.abi.WorkFifoCounters;

/**
 * The ring of work items between a host and its device. One thread at a time adds items and records the progress of the
 * kernels. Kernels read items.
 *
 * <p>
 * Positions count all bytes ever added, modulo 2<sup>32</sup>. The ring's size is a power of two, so a masked position
 * is an offset. Items are copied 16 bytes at a time. An item that crosses the ring's end continues at its beginning.
 */
public final class WorkFifo {

    /** Size unit in bytes; sizes of items and positions are multiples of it. */
    public static final int UNIT = 16;
    /**
     * Maximum size of a FIFO in bytes. Positions would allow twice as much, 2<sup>31</sup>. NCCL has the same limit.
     */
    public static final int MAX_BYTES = 1 << 30;

    private final MemorySegment buffer;
    private final WorkFifoCounters counters;
    private final int bytes;
    private int produced;
    private int consumed;

    /**
     * @param buffer the ring: {@value #UNIT} to {@value #MAX_BYTES} bytes, a power of two, aligned to {@value #UNIT}
     * @param first  initial value of both counters, a multiple of {@value #UNIT}: 0, except in tests of their wrap
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

    /** Returns whether the given number of bytes can be added now. Bytes that kernels may still read take up room. */
    public boolean hasRoom(int itemBytes) {
        return Integer.compareUnsigned(produced + itemBytes - consumed, bytes) <= 0;
    }

    /**
     * Adds items, a multiple of {@value #UNIT} bytes. Returns the position of the first item. The release of the
     * counter publishes the copy.
     *
     * @throws IllegalStateException if there is not enough room
     */
    public int put(MemorySegment items) {
        int length = Math.toIntExact(items.byteSize());
        if (!hasRoom(length) || length % UNIT != 0) {
            throw new IllegalStateException(length + " bytes of work do not go into " + this);
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
     * Frees room. All bytes before the position were read by kernels that have completed.
     *
     * @throws IllegalArgumentException if the position does not lie between the counters
     */
    public void consume(int position) {
        if (Integer.compareUnsigned(position - consumed, produced - consumed) > 0) {
            throw new IllegalArgumentException("position " + Integer.toUnsignedString(position) + " is not in " + this);
        }
        consumed = position;
        counters.consumedRelease(position);
    }

    /** Returns the position after the last item added, modulo 2<sup>32</sup>. */
    public int produced() {
        return produced;
    }

    /** Returns the number of bytes that kernels may still read. */
    public int used() {
        return produced - consumed;
    }

    public int bytes() {
        return bytes;
    }

    /** Returns the address of the ring, which a kernel is launched with. */
    public long address() {
        return buffer.address();
    }

    @Override
    public String toString() {
        return "the work FIFO of " + bytes + " bytes" + " (produced " + Integer.toUnsignedString(produced)
                + ", consumed " + Integer.toUnsignedString(consumed) + ")";
    }
}
