package org.millrace.abi;

import java.lang.foreign.MemorySegment;
import org.millrace.ffi.device.device_h;

/**
 * A line of the LL128 protocol: 15 words of data and a flag.
 *
 * <pre>
 *    0       8       16                          112     120     128
 *    +-------+-------+------------- - - - -------+-------+-------+
 *    | data  | data  |            ...            | data  | flag  |
 *    +-------+-------+------------- - - - -------+-------+-------+
 *      u64                                                 u64
 * </pre>
 *
 * <p>
 * On the send side the kernel writes lines and then stores {@code tail} with release. After an acquire of {@code tail},
 * the proxy therefore sees the lines. On the receive side the kernel polls only the flags, so the proxy must store a
 * line's data before its flag. The proxy's release of the flag pairs with the kernel's load of the flag. A bulk copy of
 * whole lines would not preserve this order.
 *
 * <p>
 * The methods for one line access the segment, which checks each access. The methods for many lines require native
 * memory. They check the range of the lines once, and then access the lines by address. Offsets are multiples of
 * {@link #BYTES}.
 *
 * <p>
 * Facts: NCCL 2.28 {@code device.h}, {@code device/prims_ll128.h}.
 */
public final class LL128Line {
    /** Size of a line in bytes. */
    public static final long BYTES = device_h.NCCL_LL128_LINESIZE();
    /**
     * Number of lines that a warp of NCCL writes at once, called a unit. The size of a step is a multiple of a unit,
     * and takeovers rely on this fact.
     */
    public static final int UNIT_LINES = 16;
    /** Number of bytes of data at the beginning of a line. */
    public static final long DATA_BYTES = (long) device_h.NCCL_LL128_DATAELEMS() * Long.BYTES;
    /** Offset of the flag in a line, in bytes. */
    public static final long FLAG_OFFSET = DATA_BYTES;

    private static final String LINES = "LL128 lines";

    private LL128Line() {}

    /** {@return the flag of all lines of a step: the number of the following step, in 64 bits} */
    public static long flag(long step) {
        return step + 1;
    }

    /** {@return the flag of a line; later loads of the line's data happen after this load} */
    public static long flagAcquire(MemorySegment buffer, long offset) {
        return (long) Words.LONG.getAcquire(buffer, offset + FLAG_OFFSET);
    }

    /** Stores the flag of a line, after the line's data. */
    public static void flagRelease(MemorySegment buffer, long offset, long flag) {
        Words.LONG.setRelease(buffer, offset + FLAG_OFFSET, flag);
    }

    /**
     * Returns whether consecutive lines all carry the given flag. If they do, later loads of the lines' data happen
     * after the loads of the flags.
     */
    public static boolean areReadyAcquire(MemorySegment buffer, long offset, long bytes, long flag) {
        long first = Words.readable(LINES, buffer, offset, bytes);
        int lines = (int) (bytes / BYTES);
        for (int i = 0; i < lines; i++) {
            if (flagAcquire(first + i * BYTES) != flag) {
                return false;
            }
        }
        return true;
    }

    /** Stores consecutive lines. Stores the data of each line before the flag of the line. */
    public static void storeRelease(MemorySegment buffer, long offset, MemorySegment data, int lines, long flag) {
        long first = Words.writable(LINES, buffer, offset, lines * BYTES);
        for (int i = 0; i < lines; i++) {
            long line = first + i * BYTES;
            MemorySegment.copy(data, i * DATA_BYTES, Words.MEMORY, line, DATA_BYTES);
            flagRelease(line, flag);
        }
    }

    /** Stores the flags of consecutive lines, after all earlier accesses of this thread. */
    public static void flagsRelease(MemorySegment buffer, long offset, int lines, long flag) {
        long first = Words.writable(LINES, buffer, offset, lines * BYTES);
        for (int i = 0; i < lines; i++) {
            flagRelease(first + i * BYTES, flag);
        }
    }

    /**
     * Copies consecutive lines. Stores the data of each line before the flag of the line.
     *
     * @param offset offset of the first line in both segments, a multiple of {@link #BYTES}
     */
    public static void copyRelease(MemorySegment from, MemorySegment to, long offset, long bytes) {
        long source = Words.readable(LINES, from, offset, bytes);
        long target = Words.writable(LINES, to, offset, bytes);
        int lines = (int) (bytes / BYTES);
        for (int i = 0; i < lines; i++) {
            long at = i * BYTES;
            MemorySegment.copy(Words.MEMORY, source + at, Words.MEMORY, target + at, DATA_BYTES);
            flagRelease(target + at, flagAcquire(source + at));
        }
    }

    /** Returns the flag of the line at an address. Later loads happen after this load. */
    private static long flagAcquire(long line) {
        return (long) Words.LONG.getAcquire(Words.MEMORY, line + FLAG_OFFSET);
    }

    /** Stores the flag of the line at an address, after the line's data. */
    private static void flagRelease(long line, long flag) {
        Words.LONG.setRelease(Words.MEMORY, line + FLAG_OFFSET, flag);
    }
}
