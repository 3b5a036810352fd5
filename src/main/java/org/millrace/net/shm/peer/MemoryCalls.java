package org.millrace.net.shm.peer;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** The kernel's calls for memory of processes, with its error numbers as negative results. */
final class MemoryCalls {

    static final int EPERM = 1;
    static final int ESRCH = 3;
    static final int ENOMEM = 12;
    static final int EFAULT = 14;
    static final int ENOSYS = 38;

    /** Where a call leaves its error number. */
    static final StructLayout ERROR = Linker.Option.captureStateLayout();

    private static final Map<Integer, String> NAMES =
            Map.of(EPERM, "EPERM", ESRCH, "ESRCH", ENOMEM, "ENOMEM", EFAULT, "EFAULT", ENOSYS, "ENOSYS");
    private static final long ERRNO_OFFSET = ERROR.byteOffset(StructLayout.PathElement.groupElement("errno"));

    private static final @Nullable MethodHandle READ = function("process_vm_readv",
            FunctionDescriptor.of(ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG,
                    ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG),
            Linker.Option.captureCallState("errno"));
    private MemoryCalls() {}

    @SuppressWarnings("restricted") // the C library
    private static @Nullable MethodHandle function(String name, FunctionDescriptor descriptor,
            Linker.Option... options) {
        Linker linker = Linker.nativeLinker();
        Optional<MemorySegment> symbol = linker.defaultLookup().find(name);
        return symbol.map(address -> linker.downcallHandle(address, descriptor, options)).orElse(null);
    }

    /**
     * Reads memory of a process into memory of this one: {@code process_vm_readv}.
     *
     * @param error    an {@link #ERROR} of the caller's own
     * @param pid      of the process, as this process's namespace numbers it
     * @param to       address of an array of {@code iovec}
     * @param parts    its length
     * @param from     address of an array of {@code iovec}, whose addresses are the other process's
     * @param fromMany its length
     * @return how many bytes were read, perhaps fewer than there are; the error number, negated, if none were
     */
    static long read(MemorySegment error, int pid, long to, long parts, long from, long fromMany) {
        if (READ == null) {
            return -ENOSYS;
        }
        try {
            long read = (long) READ.invokeExact(error, pid, to, parts, from, fromMany, 0L);
            return read < 0 ? -error.get(ValueLayout.JAVA_INT, ERRNO_OFFSET) : read;
        } catch (Throwable e) {
            throw new IllegalStateException("cannot call process_vm_readv", e);
        }
    }

    /** Lets every process of this user read this one's memory, where Yama would let only its ancestors; for good. */
    static void letAnyProcessRead() {
        if (Control.CALL == null) {
            return;
        }
        try {
            int ignored = (int) Control.CALL.invokeExact(Control.SET_PTRACER, Control.ANY_PROCESS, 0L, 0L, 0L);
        } catch (Throwable e) {
            throw new IllegalStateException("cannot call prctl", e);
        }
    }

    /** An error number as C programs call it. */
    static String name(int errno) {
        return NAMES.getOrDefault(errno, "error " + errno);
    }

    /** Linked only where it is needed: that takes time while a process starts. */
    private static final class Control {

        /** {@code PR_SET_PTRACER} and {@code PR_SET_PTRACER_ANY} of {@code <sys/prctl.h>}. */
        static final int SET_PTRACER = 0x59616d61;
        static final long ANY_PROCESS = -1;

        static final @Nullable MethodHandle CALL = function("prctl",
                FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG,
                        ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG),
                Linker.Option.firstVariadicArg(1));
    }
}
