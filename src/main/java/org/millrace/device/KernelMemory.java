package org.millrace.device;

import java.lang.foreign.MemorySegment;
import org.millrace.MillraceException;

/**
 * The memory that a kernel's work means: work says addresses, and what lies there is looked up here, as a device looks
 * pages up. So an arena that is closed too early is an error instead of a crash, and what the garbage collector manages
 * stays while a kernel uses it. The device's thread alone looks up.
 */
final class KernelMemory {

    private final MemorySegment[] segments;
    /** Work comes in nearly the order in which it was planned: a search begins where the last one ended. */
    private int next;

    KernelMemory(MemorySegment[] segments) {
        this.segments = segments;
    }

    /**
     * A segment that begins at an address and has so much; {@link MemorySegment#NULL} for address 0.
     *
     * @throws MillraceException if the plan was made with no such memory
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
