package org.millrace.bench.crossing;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.invoke.VarHandle;
import org.millrace.bench.comparator.CLibrary;

/** Calls of {@code crossing_callee}, which adds 1. */
public final class Calls {

    private Calls() {}

    /** Handles of the functions, which must be static final to be compiled. */
    private static final class Handles {
        private static final FunctionDescriptor LONG_TO_LONG =
                FunctionDescriptor.of(ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG);
        private static final CLibrary LIBRARY = CLibrary.ofThisJvm();
        private static final MethodHandle PLAIN = LIBRARY.handle("crossing_callee", LONG_TO_LONG);
        private static final MethodHandle CRITICAL =
                LIBRARY.handle("crossing_callee", LONG_TO_LONG, Linker.Option.critical(false));
        private static final MethodHandle WITH_ERRNO =
                LIBRARY.handle("crossing_failing", LONG_TO_LONG, Linker.Option.captureCallState("errno"));
        private static final VarHandle ERRNO =
                Linker.Option.captureStateLayout().varHandle(MemoryLayout.PathElement.groupElement("errno"));
        private static final MemorySegment STATE = Arena.global().allocate(Linker.Option.captureStateLayout());
    }

    /**
     * Calls without special options.
     *
     * @param count number of calls
     * @return a sum
     */
    public static long plain(long count) {
        try {
            long sum = 0;
            for (long i = 0; i < count; i++) {
                sum += (long) Handles.PLAIN.invokeExact(i);
            }
            return sum;
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    /**
     * Calls while the thread stays in the state that the garbage collector waits for. Only suitable for functions that
     * return at once.
     *
     * @param count number of calls
     * @return a sum
     */
    public static long critical(long count) {
        try {
            long sum = 0;
            for (long i = 0; i < count; i++) {
                sum += (long) Handles.CRITICAL.invokeExact(i);
            }
            return sum;
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    /**
     * Calls and captures errno.
     *
     * @param count number of calls
     * @return a sum
     */
    public static long withErrno(long count) {
        try {
            long sum = 0;
            for (long i = 0; i < count; i++) {
                sum += (long) Handles.WITH_ERRNO.invokeExact(Handles.STATE, i)
                        + (int) Handles.ERRNO.get(Handles.STATE, 0L);
            }
            return sum;
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    /**
     * Returns a function for C that does the same as the callee.
     *
     * @return its address
     */
    @SuppressWarnings("restricted")
    public static MemorySegment upcall() {
        try {
            MethodHandle callee = MethodHandles.lookup()
                    .findStatic(Calls.class, "callee", MethodType.methodType(long.class, long.class));
            return Linker.nativeLinker().upcallStub(callee, Handles.LONG_TO_LONG, Arena.global());
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private static long callee(long value) {
        return value + 1;
    }
}
