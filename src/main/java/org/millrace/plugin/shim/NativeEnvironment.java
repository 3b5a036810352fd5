package org.millrace.plugin.shim;

import java.lang.foreign.Arena;
import java.lang.invoke.MethodHandle;
import org.jspecify.annotations.Nullable;
import org.millrace.agent.CLibrary;

/** The process's environment as C sees it: {@link System#getenv} is a copy, and it cannot be written. */
public final class NativeEnvironment {

    private static final MethodHandle GETENV = CLibrary.function("getenv");
    private static final MethodHandle SETENV = CLibrary.function("setenv");

    private NativeEnvironment() {}

    /** A variable's value; null if it is not set. */
    public static @Nullable String get(String name) {
        try (Arena arena = Arena.ofConfined()) {
            long value = (long) GETENV.invokeExact(arena.allocateFrom(name).address(), 0L, 0L);
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
            result = (int) (long) SETENV.invokeExact(arena.allocateFrom(name).address(),
                    arena.allocateFrom(value).address(), 1L);
        } catch (Throwable e) {
            throw new IllegalStateException("cannot set the environment variable " + name, e);
        }
        if (result != 0) {
            throw new IllegalStateException("cannot set the environment variable " + name + ": out of memory");
        }
    }
}
