package org.millrace.file;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import org.millrace.foreign.CFunction;

/** Linux system calls, each made by its number through the C library's function {@code syscall}. */
public final class SystemCall {

    public static final int MEMFD_CREATE = 0;
    public static final int OPENAT = 1;
    public static final int FCNTL = 2;
    public static final int CLOSE = 3;
    public static final int FALLOCATE = 4;
    public static final int FLOCK = 5;
    static final int KILL = 6;
    /** ESRCH of {@code <errno.h>}. */
    static final int NO_SUCH_PROCESS = 3;

    /**
     * Number of each system call on this processor, indexed by the constants of this class; null if the processor is
     * not supported.
     */
    private static final long @Nullable [] NUMBERS = switch (System.getProperty("os.arch")) {
        case "amd64", "x86_64" -> new long[] {319, 257, 72, 3, 285, 73, 62};
        case "aarch64" -> new long[] {279, 56, 25, 57, 47, 32, 129};
        default -> null;
    };
    private static final long FROM_HERE = -100;
    private static final long READ_WRITE_CLOEXEC = 2 | 0x80000;

    private static final @Nullable CFunction SYSCALL =
            NUMBERS == null || !System.getProperty("os.name").equals("Linux") ? null
                    : CFunction.find("syscall").orElse(null);

    private SystemCall() {}

    /**
     * Returns whether system calls are possible in this process. If not, no other method of this class may be called.
     */
    public static boolean isKnown() {
        return SYSCALL != null;
    }

    /**
     * Makes a system call with three arguments.
     *
     * @param call constant of this class
     * @return the result, or the negated error number
     */
    public static long of(int call, long first, long second, long third) {
        return of(call, first, second, third, 0);
    }

    /**
     * Makes a system call with four arguments.
     *
     * @param call constant of this class
     * @return the result, or the negated error number
     */
    public static long of(int call, long first, long second, long third, long fourth) {
        try (Arena arena = Arena.ofConfined()) {
            return SYSCALL.callForErrno(CFunction.newErrno(arena), NUMBERS[call], first, second, third, fourth, 0);
        }
    }

    /**
     * @param what description of the call, for the message
     * @throws IOException if the result is a negated error number
     */
    public static long check(String what, long result) throws IOException {
        if (result < 0) {
            throw new IOException(what + " fails with error " + -result);
        }
        return result;
    }

    /**
     * Opens an existing file for reading and writing. Returns its descriptor, which started programs do not inherit.
     */
    public static int open(Path file) throws IOException {
        try (Arena arena = Arena.ofConfined()) {
            return (int) check("opening " + file,
                    of(OPENAT, FROM_HERE, arena.allocateFrom(file.toString()).address(), READ_WRITE_CLOEXEC));
        }
    }
}
