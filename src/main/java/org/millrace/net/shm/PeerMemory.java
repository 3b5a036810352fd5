package org.millrace.net.shm;

import java.lang.foreign.MemorySegment;

/** Read access to the memory of a connection's peer process. Used by one thread at a time. A read allocates nothing. */
interface PeerMemory {

    /** Maximum number of destinations of one read. */
    int MAX_PARTS = 64;

    /**
     * Adds a destination for the next {@link #read}. A read fills the destinations in the order of their addition. The
     * total length of the destinations must be the length of the read.
     *
     * @param to     memory of this process, of the global scope
     * @param offset offset of the first byte. The caller has checked that the bytes lie in the memory.
     */
    void add(MemorySegment to, long offset, long bytes);

    /**
     * Copies from the peer process's memory to the added destinations, and removes the destinations.
     *
     * @param address address in the peer process
     * @return number of copied bytes, which may be less than requested; a negative error number of the operating system
     *         if no byte was copied. See {@link #isGone} and {@link #describe}.
     */
    long read(long address, long bytes);

    /** Returns whether the result of a read means that the peer process has ended. */
    static boolean isGone(long result) {
        return result == -ProcessReader.ESRCH;
    }

    /** Returns a description of an error, for messages. The argument is the result of a read. */
    static String describe(long result) {
        int errno = result == 0 ? ProcessReader.EFAULT : (int) -result;
        return ProcessReader.name(errno) + switch (errno) {
            case ProcessReader.EFAULT ->
                ": the memory is no longer mapped there, or of a kind that the kernel does not read for others";
            case ProcessReader.EPERM -> ": reading was allowed when the connection was made, and is no longer allowed";
            default -> ": process_vm_readv failed";
        };
    }
}
