package org.millrace.device;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.abi.WorkFifoCounters;

/**
 * The ring of work items between a host and its device. One thread at a time puts items in and takes note of what
 * kernels have read; kernels read.
 *
 * <p>
 * Positions count bytes from the beginning of time, modulo 2<sup>32</sup>; the ring's size is a power of two, so that a
 * position masked is an offset. Items are copied 16 bytes at a time: one that reaches over the ring's end continues at
 * its beginning.
 */
public final class WorkFifo {

    /** Items are a multiple of it, and so are positions. */
    public static final int UNIT = 16;
    /** The largest FIFO: half of what positions can tell apart would do, NCCL takes a quarter. */
    public static final int MAX_BYTES = 1 << 30;

    private final MemorySegment buffer;
    private final WorkFifoCounters counters;
    private final int bytes;
    private int produced;
    private int consumed;

    /**
     * @param buffer the ring, {@value #UNIT} to {@value #MAX_BYTES} bytes, a power of two, aligned to {@value #UNIT}
     * @param first  where both counters begin, a multiple of {@value #UNIT}: 0 but for tests of their wrap
     * @throws IllegalArgumentException if the size or the first position is none of these
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

    /** Whether so many bytes can be put in now: not while kernels may still read what lies there. */
    public boolean hasRoom(int itemBytes) {
        return Integer.compareUnsigned(produced + itemBytes - consumed, bytes) <= 0;
    }

    /**
     * Puts items in, a multiple of {@value #UNIT} bytes, and returns the position of the first. The copy becomes
     * visible with the counter's release.
     *
     * @throws IllegalStateException if there is no room
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
     * Gives room back: what lies before a position was read by kernels that have completed.
     *
     * @throws IllegalArgumentException if it does not lie between the counters
     */
    public void consume(int position) {
        if (Integer.compareUnsigned(position - consumed, produced - consumed) > 0) {
            throw new IllegalArgumentException("position " + Integer.toUnsignedString(position) + " is not in " + this);
        }
        consumed = position;
        counters.consumedRelease(position);
    }

    /** The position behind what was put in last, modulo 2<sup>32</sup>. */
    public int produced() {
        return produced;
    }

    /** Bytes that kernels may still read. */
    public int used() {
        return produced - consumed;
    }

    public int bytes() {
        return bytes;
    }

    /** Where it lies: what a kernel is launched with. */
    public long address() {
        return buffer.address();
    }

    @Override
    public String toString() {
        return "the work FIFO of " + bytes + " bytes" + " (produced " + Integer.toUnsignedString(produced)
                + ", consumed " + Integer.toUnsignedString(consumed) + ")";
    }
}
