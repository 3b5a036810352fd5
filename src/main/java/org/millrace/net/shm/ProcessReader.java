package org.millrace.net.shm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.millrace.file.ProcessIdentity;
import org.millrace.foreign.CFunction;

/**
 * Reads the memory of another process by {@code process_vm_readv}. Every call first reads the process's {@link Cookie}.
 * A wrong cookie shows that the process ID was reused, or that the process executes another program. The operating
 * system looks up the process only once in a call, so all bytes of the call come from the process with the cookie.
 */
final class ProcessReader implements PeerMemory {

    static final int EPERM = 1;
    static final int ESRCH = 3;
    static final int ENOMEM = 12;
    static final int EFAULT = 14;
    static final int ENOSYS = 38;
    private static final Map<Integer, String> NAMES =
            Map.of(EPERM, "EPERM", ESRCH, "ESRCH", ENOMEM, "ENOMEM", EFAULT, "EFAULT", ENOSYS, "ENOSYS");

    /** {@code PR_SET_PTRACER} and {@code PR_SET_PTRACER_ANY} of {@code <sys/prctl.h>}. */
    private static final long SET_PTRACER = 0x59616d61;
    private static final long ANY_PROCESS = -1;

    private static final @Nullable CFunction READ = CFunction.find("process_vm_readv").orElse(null);

    /** Length of an {@code iovec}: address and length. */
    private static final int VECTOR_BYTES = 2 * Long.BYTES;
    private static final int LOCAL_OFFSET = 0;
    private static final int REMOTE_OFFSET = LOCAL_OFFSET + (1 + MAX_PARTS) * VECTOR_BYTES;
    private static final int COOKIE_OFFSET = REMOTE_OFFSET + 2 * VECTOR_BYTES;
    private static final int TOTAL_BYTES = COOKIE_OFFSET + Cookie.BYTES;

    private final int pid;
    private final Cookie cookie;
    private final MemorySegment vectors;
    private final MemorySegment errno;
    private int parts;

    ProcessReader(ProcessIdentity process, Cookie cookie) {
        this.pid = Math.toIntExact(process.pid());
        this.cookie = cookie;
        Arena arena = Arena.ofAuto();
        vectors = arena.allocate(TOTAL_BYTES, Long.BYTES);
        errno = CFunction.newErrno(arena);
        vector(LOCAL_OFFSET, vectors.address() + COOKIE_OFFSET, Cookie.BYTES);
        vector(REMOTE_OFFSET, cookie.address(), Cookie.BYTES);
    }

    private void vector(long at, long address, long bytes) {
        vectors.set(ValueLayout.JAVA_LONG, at, address);
        vectors.set(ValueLayout.JAVA_LONG, at + Long.BYTES, bytes);
    }

    @Override
    public void add(MemorySegment to, long offset, long bytes) {
        if (parts == MAX_PARTS) {
            throw new IllegalStateException("more than " + MAX_PARTS + " parts");
        }
        parts++;
        vector(LOCAL_OFFSET + (long) parts * VECTOR_BYTES, to.address() + offset, bytes);
    }

    @Override
    public long read(long address, long bytes) {
        vector(REMOTE_OFFSET + VECTOR_BYTES, address, bytes);
        int many = 1 + parts;
        parts = 0;
        vectors.set(ValueLayout.JAVA_LONG, COOKIE_OFFSET, ~cookie.first());
        long local = vectors.address() + LOCAL_OFFSET;
        long remote = vectors.address() + REMOTE_OFFSET;
        long read = READ == null ? -ENOSYS : read(READ, local, many, remote, bytes == 0 ? 1 : 2);
        if (read < 0) {
            return read;
        }
        return isCookieRight(read) ? read - Cookie.BYTES : -ESRCH;
    }

    /**
     * Calls a function. If the call fails, repeats the call to get the error number. The first call does not request
     * the error number, because {@link CFunction#callForErrno} can allocate.
     */
    private long read(CFunction function, long local, int locals, long remote, int remotes) {
        long read = function.call(pid, local, locals, remote, remotes, 0);
        return read < 0 ? function.callForErrno(errno, pid, local, locals, remote, remotes, 0) : read;
    }

    private boolean isCookieRight(long read) {
        return read >= Cookie.BYTES && vectors.get(ValueLayout.JAVA_LONG, COOKIE_OFFSET) == cookie.first()
                && vectors.get(ValueLayout.JAVA_LONG, COOKIE_OFFSET + Long.BYTES) == cookie.second();
    }

    /**
     * Permanently allows every process of this user to read this process's memory. In its default setting, the Yama
     * security module lets only the process's ancestors read this memory.
     */
    static void letAnyProcessRead() {
        CFunction.find("prctl").ifPresent(prctl -> prctl.call(SET_PTRACER, ANY_PROCESS));
    }

    static String name(int errno) {
        return NAMES.getOrDefault(errno, "error " + errno);
    }
}
