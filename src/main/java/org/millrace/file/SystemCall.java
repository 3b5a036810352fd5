package org.millrace.file;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/** Calls of Linux's kernel by their numbers: one link for all of them. */
public final class SystemCall {

    public static final int MEMFD_CREATE = 0;
    public static final int OPENAT = 1;
    public static final int FCNTL = 2;
    public static final int CLOSE = 3;
    public static final int FALLOCATE = 4;
    public static final int FLOCK = 5;

    /** In the order of the constants; none on other processors. */
    private static final long @Nullable [] NUMBERS = switch (System.getProperty("os.arch")) {
        case "amd64", "x86_64" -> new long[] {319, 257, 72, 3, 285, 73};
        case "aarch64" -> new long[] {279, 56, 25, 57, 47, 32};
        default -> null;
    };
    private static final long FROM_HERE = -100;
    private static final long READ_WRITE_CLOEXEC = 2 | 0x80000;

    private static final StructLayout ERROR = Linker.Option.captureStateLayout();
    private static final long ERRNO = ERROR.byteOffset(StructLayout.PathElement.groupElement("errno"));
    private static final @Nullable MethodHandle SYSCALL = link();

    private SystemCall() {}

    @SuppressWarnings("restricted") // the C library
    private static @Nullable MethodHandle link() {
        if (NUMBERS == null || !System.getProperty("os.name").equals("Linux")) {
            return null;
        }
        FunctionDescriptor descriptor = FunctionDescriptor.of(ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG,
                ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG);
        Linker linker = Linker.nativeLinker();
        return linker.defaultLookup()
                .find("syscall")
                .map(address -> linker.downcallHandle(address, descriptor, Linker.Option.firstVariadicArg(1),
                        Linker.Option.captureCallState("errno")))
                .orElse(null);
    }

    /** Whether calls can be made here: nothing else may be used otherwise. */
    public static boolean isKnown() {
        return SYSCALL != null;
    }

    /** The result, or the error number, negated. */
    public static long of(int call, long first, long second, long third) {
        return of(call, first, second, third, 0);
    }

    /** The same with four arguments. */
    public static long of(int call, long first, long second, long third, long fourth) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment error = arena.allocate(ERROR);
            long result = (long) SYSCALL.invokeExact(error, NUMBERS[call], first, second, third, fourth);
            return result < 0 ? -error.get(ValueLayout.JAVA_INT, ERRNO) : result;
        } catch (Throwable e) {
            throw new IllegalStateException("cannot make a system call", e);
        }
    }

    /** A result that is no error. */
    public static long check(String what, long result) throws IOException {
        if (result < 0) {
            throw new IOException(what + " fails with error " + -result);
        }
        return result;
    }

    /** Opens a file that is there; its descriptor, which programs that are started do not get. */
    public static int open(Path file) throws IOException {
        try (Arena arena = Arena.ofConfined()) {
            return (int) check("opening " + file,
                    of(OPENAT, FROM_HERE, arena.allocateFrom(file.toString()).address(), READ_WRITE_CLOEXEC));
        }
    }
}
