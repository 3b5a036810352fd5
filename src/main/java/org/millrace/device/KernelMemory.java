package org.millrace.device;

import java.lang.foreign.MemorySegment;
import org.millrace.MillraceException;

/**
 * The memory that a kernel's work refers to by address. The segment at an address is looked up here, as a device looks
 * up pages. So an arena that is closed too early causes an error instead of a crash, and the garbage collector keeps
 * its memory while a kernel uses it. Lookups happen on the device's thread only.
 */
final class KernelMemory {

    private final MemorySegment[] segments;
    /**
     * Index at which the next search begins, after the last match, because work arrives in nearly the order of the
     * plan.
     */
    private int next;

    KernelMemory(MemorySegment[] segments) {
        this.segments = segments;
    }

    /**
     * Returns a segment that begins at an address and has at least the given number of bytes;
     * {@link MemorySegment#NULL} for address 0.
     *
     * @throws MillraceException if the plan was made without such memory
     */
    MemorySegment at(long address, long bytes) {
        if (address == 0) {
            return MemorySegment.NULL;
        }
        for (int tries = 0; tries < segments.length; tries++) {
            next = next == segments.length ? 0 : next;
            MemorySegment segment = segments[next++];
            if (segment.address() == address && segment.byteSize() >= bytes) {
                return segment;
            }
        }
        throw new MillraceException("a kernel's work is damaged: there are no " + bytes + " bytes for it at 0x"
                + Long.toHexString(address));
    }
}
