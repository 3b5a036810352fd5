package org.millrace.abi;

import java.lang.foreign.MemorySegment;
import org.millrace.ffi.device.device_h;
import org.millrace.foreign.Words;

/**
 * A line of the LL128 protocol: words of data and a flag.
 *
 * <pre>
 *    NCCL     0       8       16              48      56      64                 112     120     128
 *             +-------+-------+------ - - ----+-------+-------+------- - - ------+-------+-------+
 *             | data  | data  |      ...      | data  | data  |       ...        | data  | flag  |
 *             +-------+-------+------ - - ----+-------+-------+------- - - ------+-------+-------+
 *
 *    RCCL     0       8       16              48      56      64
 *             +-------+-------+------ - - ----+-------+-------+
 *             | data  | data  |      ...      | data  | flag  |
 *             +-------+-------+------ - - ----+-------+-------+
 * </pre>
 *
 * <p>
 * On the send side the kernel writes lines and then stores {@code tail} with release. After an acquire of {@code tail},
 * the proxy therefore sees the lines. On the receive side the kernel polls only the flags, so the proxy must store a
 * line's data before its flag. The proxy's release of the flag pairs with the kernel's load of the flag. A bulk copy of
 * whole lines would not preserve this order.
 *
 * <p>
 * The methods require native memory. They check the range of the lines once, and then access the lines by address.
 * Offsets are multiples of {@link #bytes}.
 *
 * <p>
 * Facts: NCCL 2.28 {@code device.h}, {@code device/prims_ll128.h}; RCCL 2.27.7 and 2.28.3 {@code include/device.h},
 * lines 144 and 164.
 *
 * @param bytes size of the line in bytes, a power of two
 */
public record LL128Line(long bytes) {
    /** Size in bytes of a line in NCCL's memory and in Millrace's own memory. */
    public static final long BYTES = device_h.NCCL_LL128_LINESIZE();
    /**
     * Number of lines in a unit. A warp of NCCL writes one unit in one iteration. The size of a step is a multiple of a
     * unit, and takeovers rely on this fact.
     */
    public static final int UNIT_LINES = 16;
    /** Number of bytes of data at the beginning of a line of NCCL. */
    public static final long DATA_BYTES = (long) device_h.NCCL_LL128_DATAELEMS() * Long.BYTES;
    /** Line in NCCL's memory and in Millrace's own memory. */
    public static final LL128Line NCCL = new LL128Line(BYTES);
    /** Layout of a line in RCCL up to 2.30, except on GPUs of type gfx1250. */
    public static final LL128Line RCCL = new LL128Line(BYTES / 2);

    private static final String LINES = "LL128 lines";

    /**
     * {@return the number of bytes of data at the beginning of the line, which is also the offset of the flag in bytes}
     */
    public long dataBytes() {
        return bytes - Long.BYTES;
    }

    /** {@return whether a number of bytes is a whole number of lines} */
    public boolean divides(long size) {
        return (size & bytes - 1) == 0;
    }

    /** Returns the number of lines in a number of bytes. */
    private int count(long size) {
        return (int) (size >>> Long.numberOfTrailingZeros(bytes));
    }

    /** {@return the flag of all lines of a step: the number of the following step, in 64 bits} */
    public static long flag(long step) {
        return step + 1;
    }

    /**
     * Returns whether consecutive lines all carry the given flag. If they do, later loads of the lines' data happen
     * after the loads of the flags.
     */
    public boolean areReadyAcquire(MemorySegment buffer, long offset, long bytes, long flag) {
        long first = Words.readable(LINES, buffer, offset, bytes);
        int lines = count(bytes);
        for (int i = 0; i < lines; i++) {
            if (flagAcquire(first + i * this.bytes) != flag) {
                return false;
            }
        }
        return true;
    }

    /** Stores consecutive lines. Stores the data of each line before the flag of the line. */
    public void storeRelease(MemorySegment buffer, long offset, MemorySegment data, int lines, long flag) {
        long first = Words.writable(LINES, buffer, offset, lines * this.bytes);
        for (int i = 0; i < lines; i++) {
            long line = first + i * this.bytes;
            MemorySegment.copy(data, i * dataBytes(), Words.MEMORY, line, dataBytes());
            flagRelease(line, flag);
        }
    }

    /** Stores the flags of consecutive lines, after all earlier accesses of this thread. */
    public void flagsRelease(MemorySegment buffer, long offset, int lines, long flag) {
        long first = Words.writable(LINES, buffer, offset, lines * this.bytes);
        for (int i = 0; i < lines; i++) {
            flagRelease(first + i * this.bytes, flag);
        }
    }

    /**
     * Copies consecutive lines. Stores the data of each line before the flag of the line.
     *
     * @param offset offset of the first line in both segments, a multiple of {@link #bytes}
     */
    public void copyRelease(MemorySegment from, MemorySegment to, long offset, long bytes) {
        long source = Words.readable(LINES, from, offset, bytes);
        long target = Words.writable(LINES, to, offset, bytes);
        // The compiled copy is faster if the size of a line is a constant. The copy of 56 KiB of lines takes 4.7 us
        // with the constant, and 5.4 us without it.
        if (this.bytes == BYTES) {
            copyRelease(source, target, count(bytes), BYTES);
        } else {
            copyRelease(source, target, count(bytes), this.bytes);
        }
    }

    private static void copyRelease(long source, long target, int lines, long lineBytes) {
        long flag = lineBytes - Long.BYTES;
        for (int i = 0; i < lines; i++) {
            long at = i * lineBytes;
            MemorySegment.copy(Words.MEMORY, source + at, Words.MEMORY, target + at, flag);
            Words.LONG.setRelease(Words.MEMORY, target + at + flag,
                    (long) Words.LONG.getAcquire(Words.MEMORY, source + at + flag));
        }
    }

    /** Returns the flag of the line at an address. Later loads happen after this load. */
    private long flagAcquire(long line) {
        return (long) Words.LONG.getAcquire(Words.MEMORY, line + dataBytes());
    }

    /** Stores the flag of the line at an address, after the line's data. */
    private void flagRelease(long line, long flag) {
        Words.LONG.setRelease(Words.MEMORY, line + dataBytes(), flag);
    }
}
