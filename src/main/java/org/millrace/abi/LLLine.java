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
 * The writer (the sending kernel, or the proxy on the receive side) stores a half in one 8-byte access, and the reader
 * (the proxy, or the receiving kernel) loads it in one: so data and flag cannot be torn apart, and no other order is
 * needed between the two sides. A half holds data of step {@code s} once its flag is {@link #flag flag(s)}; before, it
 * holds that of an earlier step. A line is there when both of its halves are.
 *
 * <p>
 * A method for one line has the segment check its accesses. The one that stores many checks once where they are, and
 * goes by address from there.
 *
 * <p>
 * x86-64 and AArch64 are little-endian: data is the low, the flag the high part of a half. Facts: NCCL 2.28 {@code
 * device.h}, {@code device/prims_ll.h}.
 */
public final class LLLine {
    /** A line's size. */
    public static final long BYTES = ncclLLFifoLine.sizeof();
    /** What of a line is data. */
    public static final long DATA_BYTES = BYTES / 2;

    private static final long HALF_0 = ncclLLFifoLine.layout().byteOffset(groupElement("v"), sequenceElement(0));
    private static final long HALF_1 = ncclLLFifoLine.layout().byteOffset(groupElement("v"), sequenceElement(1));
    private static final long CLEAN_MASK = device_h.NCCL_LL_CLEAN_MASK();

    private static final String LINES = "LL lines";

    private LLLine() {}

    /** {@return the flag of a step's lines: the low 32 bits of the step after it} */
    public static int flag(long step) {
        return (int) (step + 1);
    }

    /**
     * {@return whether a step's writer fills its whole slot, so that no flag is left in it which would look right again
     * when flags have gone round}
     */
    public static boolean isCleaned(long step) {
        return (step & CLEAN_MASK) == CLEAN_MASK;
    }

    /** {@return a half from its parts} */
    public static long half(int data, int flag) {
        return Integer.toUnsignedLong(data) | (long) flag << Integer.SIZE;
    }

    /** {@return a half's data} */
    public static int data(long half) {
        return (int) half;
    }

    /** {@return a half's flag} */
    public static int flagOf(long half) {
        return (int) (half >>> Integer.SIZE);
    }

    /** {@return the first half of a line; later accesses of this thread stay behind it} */
    public static long firstHalfAcquire(MemorySegment buffer, long offset) {
        return (long) Words.LONG.getAcquire(buffer, offset + HALF_0);
    }

    /** {@return the second half of a line; later accesses of this thread stay behind it} */
    public static long secondHalfAcquire(MemorySegment buffer, long offset) {
        return (long) Words.LONG.getAcquire(buffer, offset + HALF_1);
    }

    /**
     * {@return whether both halves of a line carry a flag} If so their data is there, and later reads of it stay behind
     * this one.
     */
    public static boolean isReadyAcquire(MemorySegment buffer, long offset, int flag) {
        return flagOf(firstHalfAcquire(buffer, offset)) == flag && flagOf(secondHalfAcquire(buffer, offset)) == flag;
    }

    /**
     * {@return whether all halves of consecutive lines carry a flag} If so their data is there, and later reads of it
     * stay behind this one. The halves are copied into an array, each of them whole ({@link #copyWords} says why), and
     * looked at there: a loop over an array is quick before C2 has compiled it. Of 256 KiB of lines, microseconds:
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
        // Pairs with the writer's whole-half stores: what was copied above is read again, as data, behind this fence.
        VarHandle.acquireFence();
        long wanted = (long) flag << Integer.SIZE;
        long differing = 0;
        for (int half = 0; half < count; half++) {
            differing |= halves[half] ^ wanted;
        }
        return flagOf(differing) == 0;
    }

    /** Stores a line as two whole halves, in no order: each carries its own flag. */
    public static void storeOpaque(MemorySegment buffer, long offset, long first, long second) {
        Words.LONG.setOpaque(buffer, offset + HALF_0, first);
        Words.LONG.setOpaque(buffer, offset + HALF_1, second);
    }

    /** Stores data as consecutive lines, each of two whole halves, in no order: each carries its own flag. */
    public static void storeOpaque(MemorySegment buffer, long offset, long[] data, int lines, int flag) {
        long first = Words.writable(LINES, buffer, offset, lines * BYTES);
        for (int i = 0; i < lines; i++) {
            long line = first + i * BYTES;
            Words.LONG.setOpaque(Words.MEMORY, line + HALF_0, half((int) data[i], flag));
            Words.LONG.setOpaque(Words.MEMORY, line + HALF_1, half((int) (data[i] >>> Integer.SIZE), flag));
        }
    }

    /**
     * Copies lines to where a kernel polls their flags: each half is stored whole, and carries its own flag, so that no
     * flag is seen before its data. A copy whose addresses and length are multiples of 8 moves whole words
     * ({@code jdk.internal.misc.Unsafe.copyMemory} promises "coherent units", and {@link MemorySegment#copy} is made of
     * it), in any order.
     */
    public static void copyWords(MemorySegment from, MemorySegment to, long offset, long bytes) {
        MemorySegment.copy(from, offset, to, offset, bytes);
    }
}
