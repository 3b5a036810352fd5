package org.millrace.net.shm;

import java.lang.foreign.MemorySegment;

/** Memory of a connection's peer process. One thread at a time; a copy allocates nothing. */
interface PeerMemory {

    /** Maximum number of parts that one call fills. */
    int MAX_PARTS = 64;

    /**
     * Adds a destination that the next {@link #read} fills, behind the destinations added before. Their total length is
     * the length of the read.
     *
     * @param to     this process's memory, of the global scope
     * @param offset offset of the first byte; the caller has checked that the bytes lie within
     */
    void add(MemorySegment to, long offset, long bytes);

    /**
     * Copies from the process's memory to the added destinations, and removes these.
     *
     * @param address address in the process
     * @return number of copied bytes, possibly fewer than requested; the kernel's negated error number if none could be
     *         copied. {@link #isGone} and {@link #describe} interpret it
     */
    long read(long address, long bytes);

    /** Returns whether a result means that the process has ended. */
    static boolean isGone(long result) {
        return result == -ProcessReader.ESRCH;
    }

    /** Describes a result that is an error. */
    static String describe(long result) {
        int errno = result == 0 ? ProcessReader.EFAULT : (int) -result;
        return ProcessReader.name(errno) + switch (errno) {
            case ProcessReader.EFAULT ->
                ": the memory is not mapped there any more, or of a kind that the kernel does not read for others";
            case ProcessReader.EPERM -> ": reading was allowed when the connection was made, and is not any more";
            default -> ": process_vm_readv failed";
        };
    }
}
