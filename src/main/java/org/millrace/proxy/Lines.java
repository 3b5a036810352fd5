package org.millrace.proxy;

import java.lang.foreign.MemorySegment;
import org.millrace.abi.LL128Line;

/** Stores lines where a kernel polls their flags: never a flag before the data it vouches for. */
final class Lines {

    private Lines() {}

    /**
     * LL lines: each half is stored whole, and carries its own flag. A copy whose addresses and length are multiples of
     * 8 moves whole words ({@code jdk.internal.misc.Unsafe.copyMemory} promises "coherent units", and
     * {@link MemorySegment#copy} is made of it), in any order.
     */
    static void storeLL(MemorySegment from, MemorySegment to, long offset, long bytes) {
        MemorySegment.copy(from, offset, to, offset, bytes);
    }

    /**
     * LL128 lines: the data of a line, then its flag. The release of the flag pairs with the kernel's polling load of
     * it.
     */
    static void storeLL128(MemorySegment from, MemorySegment to, long offset, long bytes) {
        LL128Line.copyRelease(from, to, offset, bytes);
    }
}
