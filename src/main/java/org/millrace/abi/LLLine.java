package org.millrace.abi;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;
import static java.lang.foreign.MemoryLayout.PathElement.sequenceElement;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import org.millrace.ffi.device.device_h;
import org.millrace.ffi.device.ncclLLFifoLine;
import org.millrace.foreign.Words;

/**
 * A line of the LL protocol: two 8-byte halves, each with 4 bytes of data and a flag.
 *
 * <pre>
 *    0            4            8            12           16
 *    +------------+------------+------------+------------+
 *    | data1      | flag1      | data2      | flag2      |
 *    +------------+------------+------------+------------+
 *     `--------- half 0 ------' `--------- half 1 ------'
 * </pre>
 *
 * <p>
 * On the send side the kernel writes lines and the proxy reads them. On the receive side the proxy writes lines and the
 * kernel reads them. The writer stores a half in one 8-byte access, and the reader loads it in one access. A reader
 * therefore never sees the flag of one step with the data of another step, and no other ordering is needed. A half
 * contains data of step {@code s} if its flag is {@link #flag flag(s)}. A half with another flag still contains data of
 * an earlier step. A line is complete when both halves contain data of the same step.
 *
 * <p>
 * The methods for one line use the segment, which checks each access. The method that stores many lines checks their
 * range once, and then accesses the lines by address.
 *
 * <p>
 * x86-64 and AArch64 are little-endian: the data is the low part of a half, and the flag is the high part. Facts: NCCL
 * 2.28 {@code device.h}, {@code device/prims_ll.h}.
 */
public final class LLLine {
    /** Size of a line in bytes. */
    public static final long BYTES = ncclLLFifoLine.sizeof();
    /** Number of bytes of data in a line. */
    public static final long DATA_BYTES = BYTES / 2;

    private static final long HALF_0 = ncclLLFifoLine.layout().byteOffset(groupElement("v"), sequenceElement(0));
    private static final long HALF_1 = ncclLLFifoLine.layout().byteOffset(groupElement("v"), sequenceElement(1));
    private static final long CLEAN_MASK = device_h.NCCL_LL_CLEAN_MASK();

    private static final String LINES = "LL lines";

    private LLLine() {}

    /** {@return the flag of all lines of a step: the low 32 bits of the number of the following step} */
    public static int flag(long step) {
        return (int) (step + 1);
    }

    /**
     * Returns whether the writer of a step must fill the whole slot, so that no old flag remains in the slot. An old
     * flag would look valid again after the flags have wrapped.
     */
    public static boolean isCleaned(long step) {
        return (step & CLEAN_MASK) == CLEAN_MASK;
    }

    /** {@return a half that contains the given data and flag} */
    public static long half(int data, int flag) {
        return Integer.toUnsignedLong(data) | (long) flag << Integer.SIZE;
    }

    /** {@return the 4 bytes of data in a half} */
    public static int data(long half) {
        return (int) half;
    }

    /** {@return the flag in a half} */
    public static int flagOf(long half) {
        return (int) (half >>> Integer.SIZE);
    }

    /** {@return the first half of a line; later accesses of this thread happen after this load} */
    public static long firstHalfAcquire(MemorySegment buffer, long offset) {
        return (long) Words.LONG.getAcquire(buffer, offset + HALF_0);
    }

    /** {@return the second half of a line; later accesses of this thread happen after this load} */
    public static long secondHalfAcquire(MemorySegment buffer, long offset) {
        return (long) Words.LONG.getAcquire(buffer, offset + HALF_1);
    }

    /**
     * Returns whether all halves of consecutive lines carry the given flag. If they do, the lines' data is present.
     * Later loads of this data happen after the loads of this call.
     *
     * <p>
     * The method copies the halves into the array {@code halves} and checks them there. The copy loads each half in one
     * access ({@link #copyWords} explains why). A loop over an array is fast even before the JVM's second compiler (C2)
     * has compiled the loop. The table compares this method with a loop over the segment. It has the times for 256 KiB
     * of lines, in microseconds:
     *
     * <pre>
     *                      interpreter      C1      C2
     *   this method                500      25       7
     *   loop over segment       30,000     165       4
     * </pre>
     */
    public static boolean areReadyAcquire(MemorySegment buffer, long offset, long bytes, int flag, long[] halves) {
        int count = (int) (bytes / Long.BYTES);
        MemorySegment.copy(buffer, ValueLayout.JAVA_LONG, offset, halves, 0, count);
        // This fence pairs with the writer's stores of whole halves. The caller loads the lines' data again, after this
        // fence.
        VarHandle.acquireFence();
        long wanted = (long) flag << Integer.SIZE;
        long differing = 0;
        for (int half = 0; half < count; half++) {
            differing |= halves[half] ^ wanted;
        }
        return flagOf(differing) == 0;
    }

    /**
     * Stores a line as two whole halves. The halves need no order, because each half carries its own flag.
     */
    public static void storeOpaque(MemorySegment buffer, long offset, long first, long second) {
        Words.LONG.setOpaque(buffer, offset + HALF_0, first);
        Words.LONG.setOpaque(buffer, offset + HALF_1, second);
    }

    /**
     * Stores data as consecutive lines. Stores each line as two whole halves. The halves need no order, because each
     * half carries its own flag.
     *
     * @param data one element for each line, with the data of its first half in the low 32 bits
     */
    public static void storeOpaque(MemorySegment buffer, long offset, long[] data, int lines, int flag) {
        long first = Words.writable(LINES, buffer, offset, lines * BYTES);
        for (int i = 0; i < lines; i++) {
            long line = first + i * BYTES;
            Words.LONG.setOpaque(Words.MEMORY, line + HALF_0, half((int) data[i], flag));
            Words.LONG.setOpaque(Words.MEMORY, line + HALF_1, half((int) (data[i] >>> Integer.SIZE), flag));
        }
    }

    /**
     * Copies lines to memory, while a kernel polls the flags in the copied lines. Each half is stored in one access and
     * carries its own flag, so no flag becomes visible before its data. The JVM's copy moves whole words of 8 bytes, in
     * any order, if both addresses and the length are multiples of 8. {@code jdk.internal.misc.Unsafe.copyMemory}
     * promises "coherent units", and {@link MemorySegment#copy(MemorySegment, long, MemorySegment, long, long)} calls
     * that method.
     */
    public static void copyWords(MemorySegment from, MemorySegment to, long offset, long bytes) {
        MemorySegment.copy(from, offset, to, offset, bytes);
    }
}
