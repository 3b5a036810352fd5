package org.millrace.plugin.host;

import java.lang.foreign.Arena;
import org.jspecify.annotations.Nullable;
import org.millrace.foreign.CFunction;

/** The process's environment as C code sees it. {@link System#getenv} returns a read-only copy. */
public final class NativeEnvironment {

    private static final CFunction GETENV = CFunction.named("getenv");
    private static final CFunction SETENV = CFunction.named("setenv");
    private static final CFunction UNSETENV = CFunction.named("unsetenv");

    private NativeEnvironment() {}

    public static @Nullable String get(String name) {
        try (Arena arena = Arena.ofConfined()) {
            long value = GETENV.call(arena.allocateFrom(name).address());
            return value == 0 ? null : NativeMemory.string(value);
        }
    }

    /**
     * Sets a variable that NCCL reads after this call. C allows no other thread to read the environment during this
     * call. Call this method only while NCCL initializes, because the program's thread then waits for NCCL.
     */
    public static void set(String name, String value) {
        int result;
        try (Arena arena = Arena.ofConfined()) {
            result = (int) SETENV.call(arena.allocateFrom(name).address(), arena.allocateFrom(value).address(), 1);
        }
        if (result != 0) {
            throw new IllegalStateException("cannot set the environment variable " + name + ": out of memory");
        }
    }

    /** Removes a variable, under the same conditions as {@link #set}. */
    public static void unset(String name) {
        try (Arena arena = Arena.ofConfined()) {
            UNSETENV.call(arena.allocateFrom(name).address());
        }
    }
}
