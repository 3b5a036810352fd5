package org.millrace.foreign;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Optional;

/**
 * Large memory in pages that come directly from the operating system and are not shared with other allocations.
 *
 * <p>
 * An arena, in contrast, takes its memory from {@code malloc} and writes zeros to all of it. Memory of an arena is
 * therefore resident even if the process uses little of it. Freed memory of an arena stays resident, in the part of
 * {@code malloc}'s memory that belongs to the allocating thread.
 */
public final class PageMemory {

    private static final int READ_AND_WRITE = 3; // PROT_READ and PROT_WRITE
    private static final int PRIVATE_AND_ANONYMOUS = 0x22; // MAP_PRIVATE and MAP_ANONYMOUS
    private static final long LAST_ERRORS = -4096;

    /** Functions of the C library, linked at the first allocation. */
    private static final class Calls {
        static final CFunction MAP = CFunction.named("mmap");
        static final CFunction UNMAP = CFunction.named("munmap");
    }

    /** A function of glibc; empty if the C library does not have it. */
    private static final class Trim {
        static final Optional<CFunction> CALL = CFunction.find("malloc_trim");
    }

    private PageMemory() {}

    /**
     * Returns the free pages of {@code malloc} to the system. Does nothing if the C library lacks the function that
     * returns pages. Takes milliseconds. Other threads may have to wait for {@code malloc} during that time.
     */
    public static void trimHeap() {
        Trim.CALL.ifPresent(trim -> trim.call(0));
    }

    /**
     * Allocates memory that holds zeros, and that is resident only in pages that have been written.
     *
     * @param arena arena that frees the memory when it is closed
     * @throws OutOfMemoryError if the system has no memory left
     */
    @SuppressWarnings("restricted") // safe: the length is the allocated length
    public static MemorySegment allocate(long bytes, Arena arena) {
        long address = Calls.MAP.call(0, Math.max(bytes, 1), READ_AND_WRITE, PRIVATE_AND_ANONYMOUS, -1, 0);
        if (Long.compareUnsigned(address, LAST_ERRORS) > 0) {
            throw new OutOfMemoryError("the system has no " + bytes + " bytes of memory for this process");
        }
        return MemorySegment.ofAddress(address)
                .reinterpret(bytes, arena, given -> Calls.UNMAP.call(address, Math.max(bytes, 1)));
    }
}
