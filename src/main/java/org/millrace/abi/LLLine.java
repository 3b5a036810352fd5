package org.millrace.abi;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;
import static java.lang.foreign.MemoryLayout.PathElement.sequenceElement;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import org.millrace.ffi.device.device_h;
import org.millrace.ffi.device.ncclLLFifoLine;

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
 * The writer is the sending kernel, or the proxy on the receive side. It stores a half in one 8-byte access. The reader
 * is the proxy, or the receiving kernel, and loads the half in one access. Data and flag are therefore never torn, and
 * the two sides need no other order. A half contains data of step {@code s} once its flag is {@link #flag flag(s)}.
 * Before that, it contains data of an earlier step. A line is complete when both of its halves are.
 *
 * <p>
 * A method for one line lets the segment check its accesses. The method that stores many lines checks their range once
 * and then accesses it by address.
 *
 * <p>
 * x86-64 and AArch64 are little-endian: the data is the low part of a half, and the flag is the high part. Facts: NCCL
 * 2.28 {@code device.h}, {@code device/prims_ll.h}.
 */
public final class LLLine {
    /** The size of a line. */
    public static final long BYTES = ncclLLFifoLine.sizeof();
    /** Bytes of data of a line. */
    public static final long DATA_BYTES = BYTES / 2;

    private static final long HALF_0 = ncclLLFifoLine.layout().byteOffset(groupElement("v"), sequenceElement(0));
    private static final long HALF_1 = ncclLLFifoLine.layout().byteOffset(groupElement("v"), sequenceElement(1));
    private static final long CLEAN_MASK = device_h.NCCL_LL_CLEAN_MASK();

    private static final String LINES = "LL lines";

    private LLLine() {}

    /** {@return the flag of a step's lines, which is the low 32 bits of the number of the following step} */
    public static int flag(long step) {
        return (int) (step + 1);
    }

    /**
     * {@return whether a step's writer fills its whole slot} No old flag then remains in the slot. An old flag would
     * look valid again after the flags have wrapped.
     */
    public static boolean isCleaned(long step) {
        return (step & CLEAN_MASK) == CLEAN_MASK;
    }

    /** {@return a half composed of data and flag} */
    public static long half(int data, int flag) {
        return Integer.toUnsignedLong(data) | (long) flag << Integer.SIZE;
    }

    /** {@return the data of a half} */
    public static int data(long half) {
        return (int) half;
    }

    /** {@return the flag of a half} */
    public static int flagOf(long half) {
        return (int) (half >>> Integer.SIZE);
    }

    /** {@return the first half of a line; later accesses of this thread stay after this load} */
    public static long firstHalfAcquire(MemorySegment buffer, long offset) {
        return (long) Words.LONG.getAcquire(buffer, offset + HALF_0);
    }

    /** {@return the second half of a line; later accesses of this thread stay after this load} */
    public static long secondHalfAcquire(MemorySegment buffer, long offset) {
        return (long) Words.LONG.getAcquire(buffer, offset + HALF_1);
    }

    /**
     * {@return whether both halves of a line carry a flag} If so, their data is present, and later reads of it stay
     * after the loads of this call.
     */
    public static boolean isReadyAcquire(MemorySegment buffer, long offset, int flag) {
        return flagOf(firstHalfAcquire(buffer, offset)) == flag && flagOf(secondHalfAcquire(buffer, offset)) == flag;
    }

    /**
     * {@return whether all halves of consecutive lines carry a flag} If so, their data is present, and later reads of
     * it stay after the reads of this call. The method copies the halves into an array and checks them there. The copy
     * reads each half in one access ({@link #copyWords} explains why). A loop over an array is fast even before C2 has
     * compiled it. Microseconds for 256 KiB of lines:
     *
     * <pre>
     *               interpreter      C1      C2
     *   this                500      25       7
     *   in place         30,000     165       4
     * </pre>
     */
    public static boolean areReadyAcquire(MemorySegment buffer, long offset, long bytes, int flag, long[] halves) {
        int count = (int) (bytes / Long.BYTES);
        MemorySegment.copy(buffer, ValueLayout.JAVA_LONG, offset, halves, 0, count);
        // Pairs with the writer's whole-half stores. The data that was copied above is read again, after this fence.
        VarHandle.acquireFence();
        long wanted = (long) flag << Integer.SIZE;
        long differing = 0;
        for (int half = 0; half < count; half++) {
            differing |= halves[half] ^ wanted;
        }
        return flagOf(differing) == 0;
    }

    /** Stores a line as two whole halves in no particular order, because each half carries its own flag. */
    public static void storeOpaque(MemorySegment buffer, long offset, long first, long second) {
        Words.LONG.setOpaque(buffer, offset + HALF_0, first);
        Words.LONG.setOpaque(buffer, offset + HALF_1, second);
    }

    /**
     * Stores data as consecutive lines of two whole halves each, in no particular order, because each half carries its
     * own flag.
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
     * Copies lines to memory where a kernel polls their flags. Each half is stored in one access and carries its own
     * flag, so no flag becomes visible before its data. A copy moves whole words, in any order, if its addresses and
     * its length are multiples of 8. {@code jdk.internal.misc.Unsafe.copyMemory} promises "coherent units", and
     * {@link MemorySegment#copy(MemorySegment, long, MemorySegment, long, long)} uses it.
     */
    public static void copyWords(MemorySegment from, MemorySegment to, long offset, long bytes) {
        MemorySegment.copy(from, offset, to, offset, bytes);
    }
}
