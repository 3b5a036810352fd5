package org.millrace.device;

import java.lang.foreign.MemorySegment;
import org.millrace.MillraceException;
import org.millrace.operation.HeapAddress;

/**
 * The memory that the work of a kernel refers to by address. This class maps each address to its segment, as a device
 * maps addresses to pages. An access after the segment's arena was closed therefore causes an exception instead of a
 * crash. The garbage collector does not free the memory while a kernel uses it. Device's thread only.
 */
final class KernelMemory {

    private final MemorySegment[] segments;
    /**
     * Index in {@link #segments} at which the next search begins: the index after the segment that the previous search
     * returned. A kernel's work refers to the segments in nearly the order of the plan.
     */
    private int next;

    KernelMemory(MemorySegment[] segments) {
        this.segments = segments;
    }

    /**
     * Returns a segment that begins at an address and has at least the given number of bytes. Returns
     * {@link MemorySegment#NULL} for address 0.
     *
     * @throws MillraceException if the plan was created without such a segment
     */
    MemorySegment at(long address, long bytes) {
        if (address == 0) {
            return MemorySegment.NULL;
        }
        for (int tries = 0; tries < segments.length; tries++) {
            next = next == segments.length ? 0 : next;
            MemorySegment segment = segments[next++];
            if (segment.address() == address && segment.byteSize() >= bytes) {
                return HeapAddress.resolve(segment);
            }
        }
        throw new MillraceException("a kernel's work is damaged: there are no " + bytes + " bytes for it at 0x"
                + Long.toHexString(address));
    }
}
