package org.millrace.foreign;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Large memory, as pages of the system's own that nobody else has a part of. An arena takes its memory from
 * {@code malloc} and writes zeros to all of it: what a process uses little of is resident all the same, and what is
 * given back stays so, with the part of {@code malloc}'s memory that belongs to the thread which took it.
 */
public final class PageMemory {

    private static final int READ_AND_WRITE = 3; // PROT_READ and PROT_WRITE
    private static final int PRIVATE_AND_ANONYMOUS = 0x22; // MAP_PRIVATE and MAP_ANONYMOUS
    private static final long LAST_ERRORS = -4096;

    /** Linked when the first is taken. */
    private static final class Calls {
        static final CFunction MAP = CFunction.named("mmap");
        static final CFunction UNMAP = CFunction.named("munmap");
    }

    private PageMemory() {}

    /**
     * Takes memory that holds zeros, and is resident where it has been written to.
     *
     * @param arena with whose end it is given back
     * @throws OutOfMemoryError if the system has none
     */
    @SuppressWarnings("restricted") // as long as was asked for
    public static MemorySegment allocate(long bytes, Arena arena) {
        long address = Calls.MAP.call(0, Math.max(bytes, 1), READ_AND_WRITE, PRIVATE_AND_ANONYMOUS, -1, 0);
        if (Long.compareUnsigned(address, LAST_ERRORS) > 0) {
            throw new OutOfMemoryError("the system has no " + bytes + " bytes of memory for this process");
        }
        return MemorySegment.ofAddress(address)
                .reinterpret(bytes, arena, given -> Calls.UNMAP.call(address, Math.max(bytes, 1)));
    }
}
