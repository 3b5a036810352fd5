package org.millrace.net.shm.peer;

import java.lang.foreign.MemorySegment;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.millrace.foreign.CFunction;

/** The kernel's calls for memory of processes, with its error numbers as negative results. */
final class MemoryCalls {

    static final int EPERM = 1;
    static final int ESRCH = 3;
    static final int ENOMEM = 12;
    static final int EFAULT = 14;
    static final int ENOSYS = 38;

    /** {@code PR_SET_PTRACER} and {@code PR_SET_PTRACER_ANY} of {@code <sys/prctl.h>}. */
    private static final long SET_PTRACER = 0x59616d61;
    private static final long ANY_PROCESS = -1;

    private static final Map<Integer, String> NAMES =
            Map.of(EPERM, "EPERM", ESRCH, "ESRCH", ENOMEM, "ENOMEM", EFAULT, "EFAULT", ENOSYS, "ENOSYS");
    private static final @Nullable CFunction READ = CFunction.find("process_vm_readv").orElse(null);

    private MemoryCalls() {}

    /**
     * Reads memory of a process into memory of this one: {@code process_vm_readv}.
     *
     * @param errno    what {@link CFunction#newErrno} made for the caller
     * @param pid      of the process, as this process's namespace numbers it
     * @param to       address of an array of {@code iovec}
     * @param parts    its length
     * @param from     address of an array of {@code iovec}, whose addresses are the other process's
     * @param fromMany its length
     * @return how many bytes were read, perhaps fewer than there are; the error number, negated, if none were
     */
    static long read(MemorySegment errno, int pid, long to, long parts, long from, long fromMany) {
        return READ == null ? -ENOSYS : READ.callForErrno(errno, pid, to, parts, from, fromMany, 0);
    }

    /** Lets every process of this user read this one's memory, where Yama would let only its ancestors; for good. */
    static void letAnyProcessRead() {
        CFunction.find("prctl").ifPresent(prctl -> prctl.call(SET_PTRACER, ANY_PROCESS));
    }

    /** An error number as C programs call it. */
    static String name(int errno) {
        return NAMES.getOrDefault(errno, "error " + errno);
    }
}
