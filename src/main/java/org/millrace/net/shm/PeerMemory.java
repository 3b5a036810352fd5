package org.millrace.net.shm;

import java.lang.foreign.MemorySegment;

/** Memory of the process at the other end of a connection. One thread at a time; a copy allocates nothing. */
interface PeerMemory {

    /** Most parts that one call fills. */
    int MAX_PARTS = 64;

    /**
     * Names a place that the next {@link #read} fills, behind those named before it. All together have the length that
     * is read.
     *
     * @param to     this process's memory, of the global scope
     * @param offset of the first byte; the caller has checked that the bytes lie within
     */
    void add(MemorySegment to, long offset, long bytes);

    /**
     * Copies from the process's memory to the places that were named, and forgets these.
     *
     * @param address in the process
     * @return how many bytes were copied, perhaps fewer; the kernel's error number, negated, if none could be:
     *         {@link #isGone} and {@link #describe} say what it means
     */
    long read(long address, long bytes);

    /** Whether a result says that the process is no more. */
    static boolean isGone(long result) {
        return result == -ProcessReader.ESRCH;
    }

    /** What a result that is no number of bytes means. */
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
