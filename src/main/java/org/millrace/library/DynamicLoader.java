package org.millrace.library;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import org.jspecify.annotations.Nullable;

/**
 * The C library's {@code dlopen} and its relatives. {@link java.lang.foreign.SymbolLookup#libraryLookup(String, Arena)}
 * opens libraries too, but does not say why one could not be opened, which file a name led to, or that one must stay
 * open.
 */
public final class DynamicLoader {

    /**
     * Resolves every symbol at once, so that a missing dependency is an error here and not the end of the process
     * later.
     */
    private static final int RTLD_NOW = 2;

    private static final MethodHandle DLOPEN =
            bind("dlopen", FunctionDescriptor.of(ValueLayout.ADDRESS, ValueLayout.ADDRESS, ValueLayout.JAVA_INT));
    private static final MethodHandle DLSYM =
            bind("dlsym", FunctionDescriptor.of(ValueLayout.ADDRESS, ValueLayout.ADDRESS, ValueLayout.ADDRESS));
    private static final MethodHandle DLERROR = bind("dlerror", FunctionDescriptor.of(ValueLayout.ADDRESS));
    private static final MethodHandle DLADDR =
            bind("dladdr", FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.ADDRESS));
    private static final MethodHandle DLCLOSE =
            bind("dlclose", FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS));

    /** {@code Dl_info}: file name, base address, symbol name, symbol address. */
    private static final MemoryLayout DL_INFO = MemoryLayout.sequenceLayout(4, ValueLayout.ADDRESS);

    private DynamicLoader() {}

    /** A library that was opened, or why it was not: exactly one of the two is null. */
    public record Opened(@Nullable MemorySegment handle, @Nullable String error) {
    }

    public static Opened open(String file) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment name = arena.allocateFrom(file);
            MemorySegment handle = (MemorySegment) DLOPEN.invokeExact(name, RTLD_NOW);
            if (handle.address() != 0) {
                return new Opened(handle, null);
            }
            String error = NativeLibrary.text((MemorySegment) DLERROR.invokeExact());
            return new Opened(null, error == null ? "dlopen failed without saying why" : error);
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
    }

    /** The address of a symbol; null if the library has none of that name. */
    public static @Nullable MemorySegment find(MemorySegment handle, String symbol) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment address = (MemorySegment) DLSYM.invokeExact(handle, arena.allocateFrom(symbol));
            return address.address() == 0 ? null : address;
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
    }

    /** The file that an address was loaded from; null if it was not. */
    static @Nullable String fileOf(MemorySegment address) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment info = arena.allocate(DL_INFO);
            int found = (int) DLADDR.invokeExact(address, info);
            return found == 0 ? null : NativeLibrary.text(info.get(ValueLayout.ADDRESS, 0));
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
    }

    static void close(MemorySegment handle) {
        try {
            int ignored = (int) DLCLOSE.invokeExact(handle);
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
    }

    @SuppressWarnings("restricted")
    private static MethodHandle bind(String name, FunctionDescriptor type) {
        Linker linker = Linker.nativeLinker();
        MemorySegment address = linker.defaultLookup()
                .find(name)
                .orElseThrow(() -> new UnsatisfiedLinkError("the C library has no " + name));
        return linker.downcallHandle(address, type);
    }
}
