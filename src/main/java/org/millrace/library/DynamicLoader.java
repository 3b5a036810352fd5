package org.millrace.library;

import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.jspecify.annotations.Nullable;
import org.millrace.foreign.CFunction;

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

    private static final CFunction DLOPEN = CFunction.named("dlopen");
    private static final CFunction DLSYM = CFunction.named("dlsym");
    private static final CFunction DLERROR = CFunction.named("dlerror");
    private static final CFunction DLADDR = CFunction.named("dladdr");
    private static final CFunction DLCLOSE = CFunction.named("dlclose");

    /** {@code Dl_info}: file name, base address, symbol name, symbol address. */
    private static final MemoryLayout DL_INFO = MemoryLayout.sequenceLayout(4, ValueLayout.JAVA_LONG);

    private DynamicLoader() {}

    /** A library that was opened, or why it was not: exactly one of the two is null. */
    public record Opened(@Nullable MemorySegment handle, @Nullable String error) {
    }

    public static Opened open(String file) {
        try (Arena arena = Arena.ofConfined()) {
            long handle = DLOPEN.call(arena.allocateFrom(file).address(), RTLD_NOW);
            if (handle != 0) {
                return new Opened(MemorySegment.ofAddress(handle), null);
            }
            String error = NativeLibrary.text(MemorySegment.ofAddress(DLERROR.call()));
            return new Opened(null, error == null ? "dlopen failed without saying why" : error);
        }
    }

    /** The address of a symbol; null if the library has none of that name. */
    public static @Nullable MemorySegment find(MemorySegment handle, String symbol) {
        try (Arena arena = Arena.ofConfined()) {
            long address = DLSYM.call(handle.address(), arena.allocateFrom(symbol).address());
            return address == 0 ? null : MemorySegment.ofAddress(address);
        }
    }

    /** The file that an address was loaded from; null if it was not. */
    static @Nullable String fileOf(MemorySegment address) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment info = arena.allocate(DL_INFO);
            int found = (int) DLADDR.call(address.address(), info.address());
            return found == 0 ? null : NativeLibrary.text(MemorySegment.ofAddress(info.get(ValueLayout.JAVA_LONG, 0)));
        }
    }

    static void close(MemorySegment handle) {
        DLCLOSE.call(handle.address());
    }
}
