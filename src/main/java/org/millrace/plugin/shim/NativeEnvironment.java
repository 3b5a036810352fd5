package org.millrace.plugin.shim;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import org.jspecify.annotations.Nullable;

/** The process's environment as C sees it: {@link System#getenv} is a copy, and it cannot be written. */
public final class NativeEnvironment {

    private static final MethodHandle GETENV =
            libc("getenv", FunctionDescriptor.of(ValueLayout.JAVA_LONG, ValueLayout.ADDRESS));
    private static final MethodHandle SETENV = libc("setenv", FunctionDescriptor.of(ValueLayout.JAVA_INT,
            ValueLayout.ADDRESS, ValueLayout.ADDRESS, ValueLayout.JAVA_INT));

    private NativeEnvironment() {}

    @SuppressWarnings("restricted") // the C library
    private static MethodHandle libc(String name, FunctionDescriptor descriptor) {
        Linker linker = Linker.nativeLinker();
        return linker.downcallHandle(linker.defaultLookup().find(name).orElseThrow(), descriptor);
    }

    /** A variable's value; null if it is not set. */
    public static @Nullable String get(String name) {
        try (Arena arena = Arena.ofConfined()) {
            long value = (long) GETENV.invokeExact(arena.allocateFrom(name));
            return value == 0 ? null : NativeMemory.string(value);
        } catch (Throwable e) {
            throw new IllegalStateException("cannot read the environment variable " + name, e);
        }
    }

    /**
     * Sets a variable for NCCL, which reads it later. C allows no thread to read the environment meanwhile: only called
     * while NCCL initializes, when its user waits for it.
     */
    public static void set(String name, String value) {
        int result;
        try (Arena arena = Arena.ofConfined()) {
            result = (int) SETENV.invokeExact(arena.allocateFrom(name), arena.allocateFrom(value), 1);
        } catch (Throwable e) {
            throw new IllegalStateException("cannot set the environment variable " + name, e);
        }
        if (result != 0) {
            throw new IllegalStateException("cannot set the environment variable " + name + ": out of memory");
        }
    }
}
