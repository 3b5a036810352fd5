package org.millrace.agent;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/**
 * Functions of C that are called now and then, with up to three arguments that are integers or pointers. All have one
 * shape: the linker makes code for each shape, which takes ten milliseconds and more, and a program waits for it. Each
 * argument has a register of its own, which a function that takes fewer or shorter ones does not read.
 */
public final class CLibrary {

    private static final FunctionDescriptor SHAPE = FunctionDescriptor.of(ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG,
            ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG);

    private CLibrary() {}

    /** A function of the C library, to be called as {@code (long) handle.invokeExact(long, long, long)}. */
    public static MethodHandle function(String name) {
        return function(Linker.nativeLinker().defaultLookup().find(name).orElseThrow());
    }

    /** Where a function of the C library is, for other libraries that want to call one. */
    public static long address(String name) {
        return Linker.nativeLinker().defaultLookup().find(name).orElseThrow().address();
    }

    /** The same of a function by its address. What it returns is in as many low bits as its type has. */
    @SuppressWarnings("restricted") // its signature is the caller's to know
    public static MethodHandle function(MemorySegment address) {
        return Linker.nativeLinker().downcallHandle(address, SHAPE);
    }
}
